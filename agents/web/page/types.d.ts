// Types of the API's answers, and of what several modules of the page share; for `tsc --checkJs`.

type Maybe = number | null; // What is undefined or withheld is null.
type Bounded = { low: Maybe; high: Maybe };
type Rise = "rose" | "fell" | null;
type Weight = Bounded & { total: Maybe };

/** A share with its bounds, and how many forged reports move it beyond them. */
type Entry = Bounded & { share: Maybe; count: Maybe; influence: Maybe; forged: Maybe } & {
  bound?: string | null; // How low and high were made.
  weight?: Weight | null;
};

type Label = string | number | number[] | number[][] | null;
type ValueEntry = Entry & { value: Label };
type RangeEntry = Entry & { name: string };

type MeanEntry = Bounded & { name: string; mean: Maybe; total: Maybe; forged: Maybe };

type AreaRest = Bounded & { values: number; share: Maybe };

type AreaEntry = RangeEntry & { block: Maybe; inside: Maybe; box: number[][] | null } & {
  values: number;
  rest: AreaRest | null;
};

type QuantileEntry = { p: number; value: Label; low: Label; high: Label };
type Span = { start: string; end: string };

type Mmse = Bounded & { value: Label; share: Maybe; method: string } & {
  withheld?: string; // Why the numbers are null.
};

type Level = {
  prior: number[];
  epsilon: number;
  n: number;
  observed: number;
  expected: number[];
  p_value: number;
};

type Calibration = {
  p_value: number;
  significance: number;
  wrong: boolean;
  suspicion: string | null;
  levels: number;
  flagged: number;
  worst: Level[];
};

type Waiting = {
  reports: number;
  until: "reports" | "closing" | "later";
  more: Maybe;
  because: string; // The key of the configuration.
};

/** The estimate document. */
type Estimate = {
  collection: string;
  size?: string; // Of the collection's windows, where it is one.
  window: Span | null;
  n: number;
  attribute?: string; // Of records: the attribute.
  of?: number; // Reports about all attributes.
  final: boolean;
  withheld: boolean;
  waiting?: Waiting; // Reports that are counted, but not in the numbers yet.
  span?: Span; // What it applies to if that is wider than the window.
  lost?: { offsets: number; partitions: number[] };
  late?: number;
  rejected?: number;
  estimand?: string;
  confidence?: number;
  method?: string;
  simultaneous?: boolean;
  projection?: string; // Of shares, but not of areas.
  distribution?: ValueEntry[];
  ranges?: RangeEntry[];
  linear?: MeanEntry[];
  quantiles?: QuantileEntry[];
  areas?: { rule: string; family: number; levels: number; entries: AreaEntry[] };
  merged?: { blocks: number; runs: number[][]; names?: string[] | null; count: number };
  influence?: Maybe;
  forged?: Maybe;
  mmse?: Mmse | null;
  calibration?: Calibration | null;
  known_prior?: {
    p_value: number;
    wrong: boolean;
    values?: { name: Label; mean: Maybe; sd: Maybe }[];
  } | null;
};

type ChangeEntry = Bounded & { before: Maybe; after: Maybe; change: Maybe; told: Rise };

type ChangeSide = { window: Span; span?: Span; n: number; final: boolean; withheld: boolean };

/** How one span differs from another. */
type ChangeAnswer = {
  before: ChangeSide;
  after: ChangeSide;
  withheld: boolean;
  reason: string | null;
  estimand?: string;
  confidence?: number;
  devices?: "different" | "fresh" | "held";
  method?: string;
  family?: number;
  told?: number;
  values?: (ChangeEntry & { value: Label })[];
  blocks?: (ChangeEntry & { block: number; name: string | null })[];
  ranges?: (ChangeEntry & { name: string })[];
  linear?: (ChangeEntry & { name: string })[];
  quantiles?: (Omit<ChangeEntry, "before" | "after"> & {
    p: number;
    before: Label;
    after: Label;
    steps: Maybe;
  })[];
};

type SeriesLine = {
  kind: "value" | "range" | "linear" | "quantile";
  name: Label;
  estimate: Label[];
  low: Label[];
  high: Label[];
};

/** A few numbers over many spans. */
type SeriesAnswer = {
  collection: string;
  attribute?: string | null;
  size: string; // Of the collection's windows.
  windows_a_point: number;
  estimand: string;
  confidence: number;
  method: string;
  points: { start: string[]; end: string[]; n: number[]; late: number[] } & {
    final: boolean[];
    withheld: boolean[];
  };
  lines: SeriesLine[];
  status?: Status;
  windows?: WindowState[]; // The newest final one, and the oldest open one.
  change?: ChangeAnswer | null;
  standing?: { count: number; largest: AreaEntry | null } | null;
};

type Domain = Names & {
  kind: "values" | "size" | "grid" | "sizes" | "interval" | "attributes" | "pair";
  shape: number[];
  ordered: boolean;
  intervals: [number, number][] | null;
  rounded: boolean;
  blocks?: number; // How many reports disclose, if any.
  parts?: Domain[]; // Of a pair of attributes.
};

/** What people call the values of a collection or an attribute. */
type Names = {
  value_labels?: Record<string, string>; // In place of labels.
  unit?: string | null;
  axes?: string[] | null; // Of the dimensions.
  block_names?: string[] | null;
};

type Attribute = Names &
  Pick<Collection, "name" | "mechanism" | "values" | "domain">;

type LossOverTime = { over: string; charges: number; loss: string; factor: string };

type Privacy = {
  epsilon: string;
  protected: string[];
  unprotected: string | null;
  disclosed: string[];
  spent: LossOverTime[]; // One report first, then longer and longer times.
  limit: "spread" | "hold" | "words" | null;
};

/** What a certificate is about. */
type Policy = {
  kind: string;
  metric?: string;
  values?: Policy; // With public weights.
  attributes?: Record<string, Policy>; // Of records.
};

type Certificate = {
  mechanism: string;
  policy: Policy;
  factor: string | null;
  largest_factor: string | null;
  proof: string;
  violation: string | null;
  pass: boolean;
  odds: { said: string }[];
  information?: { bits: number };
  year: YearInWords;
};

type YearInWords = {
  title: string;
  about: string;
  readers: { who: string; said: string }[];
  disclosed: string[];
  unprotected: string | null;
  limits: string;
};

type Collection = Names & {
  name: string;
  fingerprint: string;
  mechanism: string;
  values: number;
  domain: Domain;
  privacy: Privacy;
  topic: string;
  precision_ms: number;
  window: {
    size_ms: number;
    hop_ms: number;
    grace_ms: number;
    idle_ms: Maybe;
    pane_ms: number;
    size: string;
    timezone: string;
    week_start: string | null;
  };
  minimum: number;
  minimum_block: number;
  confidence: number;
  estimand: string;
  method: string;
  top: number;
  quantiles: number[];
  ranges: string[];
  linear: string[];
  attributes?: Attribute[]; // Of records.
  accepted: { fingerprint: string }[]; // Earlier specs.
  attribute?: string; // The current attribute, with its domain and mechanism above.
  ready: boolean;
  title?: string | null; // What people call it.
  geojson?: boolean;
  annotations?: { time: string; text: string }[]; // Oldest first.
};

type PartitionStatus = {
  partition: number;
  owned: boolean;
  lag: Maybe;
  watermark: string | null;
  idle: boolean;
  counted: number;
  late: number;
  rejected: Record<string, number>;
  wait: string | null;
};

type Status = {
  counted: number;
  late: number;
  rejected: number;
  lost_offsets: number;
  problems: string[];
  stopped: boolean;
  ready: boolean;
  other_sizes: string[];
  partitions: PartitionStatus[];
};

/** With `period`, several. */
type WindowState = {
  window: Span;
  n: number;
  late: number;
  final: boolean;
  published: boolean;
  period?: boolean;
};

/** What all views are drawn from. */
type Shown = {
  collection: Collection;
  windows: WindowState[]; // Oldest first.
  window: WindowState; // The window that is shown.
  compared?: WindowState; // The window that it is compared with.
  change: Promise<ChangeAnswer | null>; // Since that window.
  status: Status;
  method: string; // The method of its bounds, as chosen or by default.
};

type View = {
  id: string; // Of its tab and panel.
  fits: (collection: Collection) => boolean; // Whether it suits a collection.
  /** Fetch and draw, but do not draw once `current` is false. Returns the document of the window, or null. */
  update: (shown: Shown, current: () => boolean) => Promise<Estimate | null>;
  compares?: (collection: Collection) => boolean; // Whether it compares two windows now.
  restyle?: () => void; // Draw again in other colours.
};

/** A window, or several that are shown or drawn as one. */
type Spot = {
  window: Span;
  n: number;
  late: number;
  final: boolean;
  withheld: boolean;
  of: SeriesAnswer;
};

type Point = {
  spot: Spot;
  middle: Maybe;
  low: Maybe;
  high: Maybe;
  labels: Label[]; // The three if they are labels, as in the document; else empty.
  texts: string[]; // The same as texts.
};

type Series = {
  kind: "range" | "quantile" | "linear" | "value";
  title: string;
  share: boolean;
  unit: string; // The axis's unit; series with the same unit share a scale.
  points: Point[];
};

type Line = {
  colour: string; // A custom property.
  shape?: string; // The path of a point; else the line alone is drawn.
  middle: Maybe[];
  low: Maybe[];
  high: Maybe[];
  label?: [string, string]; // At its end: a name, and small print.
  dashed?: boolean; // Without its bounds.
};

type ChartColumn = { x: number; wide: number; kind: "open" | "withheld"; text: string };

type Whisker = {
  y: number;
  low: number;
  middle: number;
  high: number;
  label?: string;
  open?: boolean;
};

type Chart = {
  x: number[]; // Seconds, if they are times.
  zone?: string; // Whose days and hours are drawn; by default UTC.
  step?: number; // Between times; other values are not equally far apart.
  wide?: number[]; // Steps that each point stands for, if not one.
  final?: boolean[]; // Other points are hollow, with a dashed whisker.
  extent: [number, number]; // Of y.
  lines: Line[];
  bars?: number[]; // In place of lines.
  hatched?: boolean[]; // Bars of too few reports to be shown.
  columns?: ChartColumn[]; // Steps that are marked as a whole.
  across?: Whisker[]; // Horizontal whiskers.
  notes?: number[]; // Times at which something happened.
  height: number; // Pixels.
  xTitle: string; // Without one there is no axis: it is that of the chart below.
  yTitle: string;
  yText: (value: number) => string;
  gutter?: number; // Pixels left of the chart, if others share them.
  room?: number; // Pixels right of it, if there are as many.
};

type TipRow = { name: string; value: Child; bounds?: Child[]; mark?: Element };
type Tip = { title: string; more?: string; rows: TipRow[]; notes?: Child[]; keys?: string };
type Box = { left: number; right: number; top: number; bottom: number };

/** What can be pointed at in a chart; a place stays when data changes. */
type Pointed<Place> = {
  at: (event: PointerEvent) => Place | null;
  /** Where a key leads, or null; no key leads to where the cursor begins. */
  move: (place: Place | null, key: string) => Place | null;
  /** Draw the cursor, for null take it away. Returns the box next to which the tooltip stands, relative to the viewport. */
  mark: (place: Place | null) => Box | null;
  tip: (place: Place) => Tip | null; // null if the place is gone.
  act?: (place: Place | null, key: string) => boolean; // Whether a key did something else.
};

type Change = { value: number; low: number; high: number; told: "rose" | "fell" | null };

type Told = {
  key: string | number;
  name: string;
  change: Change;
  textOf: (difference: number) => string;
  unit: string;
  was: string;
  now: string;
};

type Wait = { window: Span; due: number; reached: number; behind: PartitionStatus[] };
type Said = { said: string; bounds: string };

type First = {
  newest: Said; // In the newest final window; empty if nothing is shown of it.
  points: Point[]; // In all final windows, each span once.
  own: Told | null; // How the number has changed since the final window before.
  changes: Told[]; // All changes since then.
};

/** Percent of the width. */
type Tick = { at: number; text: string };
type Child = string | Node | null;

/** What areas show. */
type Painted = {
  areas: AreaEntry[];
  paint: () => (area: AreaEntry) => string; // The colour of each in the current theme.
  hatched: (area: AreaEntry) => boolean;
  written: (area: AreaEntry) => string; // On an area of its own; empty for nothing.
  /** Colours are those at 0 to 1. */
  legend: { title: string; unsure: string; ticks: string[]; paint: () => (at: number) => string };
  rows: (area: AreaEntry) => TipRow[]; // What is told of an area.
};

/** Parameters of a request; several values repeat one, and undefined leaves it out. */
type Options = Record<string, string | number | boolean | (string | number)[] | undefined>;

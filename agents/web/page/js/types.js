// Types of the API's answers and of the modules, for `tsc --checkJs`; no code.

/** @typedef {{total: number | null, se: number | null, low: number | null, high: number | null}} Weight */

/**
 * @typedef {object} Entry A share with its bounds; null is undefined.
 * @property {number | null} share
 * @property {number | null} count
 * @property {number | null} se
 * @property {number | null} low
 * @property {number | null} high
 * @property {number | null} influence
 * @property {number | null} forged Forged reports needed to move the share beyond its bound.
 * @property {string | null} [bound] How low and high were made.
 * @property {Weight | null} [weight]
 */

/** @typedef {string | number | number[] | number[][] | null} Label */
/** @typedef {Entry & {value: Label}} ValueEntry */
/** @typedef {Entry & {name: string}} RangeEntry */
/** @typedef {{name: string, mean: number | null, total: number | null, se: number | null, low: number | null, high: number | null, influence: number | null, forged: number | null}} MeanEntry */
/** @typedef {{values: number, share: number | null, low: number | null, high: number | null}} AreaRest */
/** @typedef {RangeEntry & {block: number | null, inside: number | null, box: number[][] | null, values: number, rest: AreaRest | null}} AreaEntry */
/** @typedef {{p: number, value: Label, low: Label, high: Label}} QuantileEntry */
/** @typedef {{start: string, end: string}} Span */

/**
 * @typedef {object} Mmse
 * @property {Label} value
 * @property {number | null} share
 * @property {number | null} count
 * @property {number | null} se
 * @property {number | null} low
 * @property {number | null} high
 * @property {string} method
 * @property {string} [withheld] Why the numbers are null.
 */

/** @typedef {{prior: number[], epsilon: number, n: number, observed: number, expected: number[], p_value: number}} Level */

/**
 * @typedef {object} Calibration
 * @property {number} p_value
 * @property {number} significance
 * @property {boolean} wrong
 * @property {string | null} suspicion
 * @property {number} levels
 * @property {number} flagged
 * @property {Level[]} worst
 */

/**
 * @typedef {object} Waiting
 * @property {number} reports
 * @property {"reports" | "closing" | "later"} until
 * @property {number | null} more
 * @property {string} because The key of the configuration.
 */

/**
 * @typedef {object} Estimate The estimate document.
 * @property {string} collection
 * @property {string} [size] Of the collection's windows, where it is one.
 * @property {Span | null} window
 * @property {number} n
 * @property {string} [attribute] Of records: the attribute.
 * @property {number} [of] Reports about all attributes.
 * @property {boolean} final
 * @property {boolean} withheld
 * @property {Waiting} [waiting] Reports that are counted, but not in the numbers yet.
 * @property {Span} [span] What it applies to if that is wider than the window.
 * @property {{offsets: number, partitions: number[]}} [lost]
 * @property {number} [late]
 * @property {number} [rejected]
 * @property {string} [estimand]
 * @property {number} [confidence]
 * @property {string} [method]
 * @property {number | null} [sharpest]
 * @property {boolean} [simultaneous]
 * @property {ValueEntry[]} [distribution]
 * @property {RangeEntry[]} [ranges]
 * @property {MeanEntry[]} [linear]
 * @property {QuantileEntry[]} [quantiles]
 * @property {{rule: string, family: number, levels: number, entries: AreaEntry[]}} [areas]
 * @property {{blocks: number, runs: number[][], names?: string[] | null, count: number}} [merged]
 * @property {number | null} [influence]
 * @property {number | null} [forged]
 * @property {Mmse | null} [mmse]
 * @property {Calibration | null} [calibration]
 * @property {{p_value: number, wrong: boolean, values?: {name: Label, mean: number | null, sd: number | null}[]} | null} [known_prior]
 */

/** @typedef {{before: number | null, after: number | null, change: number | null, se: number | null, low: number | null, high: number | null, told: "rose" | "fell" | null}} ChangeEntry */
/** @typedef {{window: Span, span?: Span, n: number, final: boolean, withheld: boolean}} ChangeSide */

/**
 * @typedef {object} ChangeAnswer How one span differs from another.
 * @property {ChangeSide} before
 * @property {ChangeSide} after
 * @property {boolean} withheld
 * @property {string | null} reason
 * @property {string} [estimand]
 * @property {number} [confidence]
 * @property {"different" | "fresh" | "held"} [devices]
 * @property {string} [method]
 * @property {number} [family]
 * @property {number} [told]
 * @property {(ChangeEntry & {value: Label})[]} [values]
 * @property {(ChangeEntry & {block: number, name: string | null})[]} [blocks]
 * @property {(ChangeEntry & {name: string})[]} [ranges]
 * @property {(ChangeEntry & {name: string})[]} [linear]
 * @property {{p: number, before: Label, after: Label, steps: number | null, low: number | null, high: number | null, told: "rose" | "fell" | null}[]} [quantiles]
 */

/** @typedef {{kind: "value" | "range" | "linear" | "quantile", name: Label, estimate: Label[], low: Label[], high: Label[]}} SeriesLine */

/**
 * @typedef {object} SeriesAnswer A few numbers over many spans.
 * @property {string} collection
 * @property {string | null} [attribute]
 * @property {string} size Of the collection's windows.
 * @property {number} windows_a_point
 * @property {string} estimand
 * @property {number} confidence
 * @property {string} method
 * @property {{start: string[], end: string[], n: number[], late: number[], final: boolean[], withheld: boolean[]}} points
 * @property {SeriesLine[]} lines
 * @property {Status} [status]
 * @property {WindowState[]} [windows] The newest final one, and the oldest open one.
 * @property {ChangeAnswer | null} [change]
 */

/**
 * @typedef {object} Domain
 * @property {"values" | "size" | "grid" | "sizes" | "interval" | "attributes" | "pair"} kind
 * @property {number[]} shape
 * @property {boolean} ordered
 * @property {[number, number][] | null} intervals
 * @property {boolean} rounded
 * @property {number} [blocks] How many reports disclose, if any.
 * @property {Domain[]} [parts] Of a pair of attributes.
 * @property {Record<string, string>} [value_labels] What people read in place of labels.
 * @property {string | null} [unit]
 * @property {string[] | null} [axes] Names of the dimensions.
 * @property {string[] | null} [block_names]
 */

/** @typedef {{name: string, mechanism: string, values: number, domain: Domain, likelihood: boolean, value_labels?: Record<string, string>, unit?: string | null, axes?: string[] | null, block_names?: string[] | null}} Attribute */

/** @typedef {{over: string, charges: number, loss: string, factor: string}} LossOverTime */

/**
 * @typedef {object} Privacy
 * @property {string} epsilon
 * @property {string[]} protected
 * @property {string | null} unprotected
 * @property {string[]} disclosed
 * @property {LossOverTime[]} spent One report first, then longer and longer times.
 * @property {"spread" | "hold" | "words" | null} limit
 */

/**
 * @typedef {object} Policy What a certificate is about.
 * @property {string} kind
 * @property {string} [metric]
 * @property {Policy} [values] With public weights.
 * @property {Record<string, Policy>} [attributes] Of records.
 */

/** @typedef {{mechanism: string, policy: Policy, factor: string | null, largest_factor: string | null, proof: string, violation: string | null, pass: boolean, odds: {said: string}[], information?: {bits: number}, year: YearInWords}} Certificate */

/** @typedef {{title: string, about: string, readers: {who: string, said: string}[], disclosed: string[], unprotected: string | null, limits: string}} YearInWords */

/**
 * @typedef {object} Collection
 * @property {string} name
 * @property {string} fingerprint
 * @property {string} mechanism
 * @property {number} values
 * @property {Domain} domain
 * @property {Privacy} privacy
 * @property {string} topic
 * @property {number} precision_ms
 * @property {{size_ms: number, hop_ms: number, grace_ms: number, idle_ms: number | null, pane_ms: number, size: string, timezone: string, week_start: string | null}} window
 * @property {number} minimum
 * @property {number} minimum_block
 * @property {number} confidence
 * @property {string} estimand
 * @property {string} method
 * @property {number} sharpest
 * @property {boolean} likelihood Whether shares can be estimated by likelihood.
 * @property {number} top
 * @property {number[]} quantiles
 * @property {string[]} ranges
 * @property {string[]} linear
 * @property {Attribute[]} [attributes] Of records.
 * @property {{fingerprint: string}[]} accepted Earlier specs.
 * @property {string} [attribute] The current attribute, with its domain and mechanism above.
 * @property {boolean} ready
 * @property {string | null} [title] What people call it.
 * @property {string | null} [unit]
 * @property {Record<string, string>} [value_labels]
 * @property {string[] | null} [axes] Names of the dimensions.
 * @property {string[] | null} [block_names]
 * @property {boolean} [geojson]
 * @property {{time: string, text: string}[]} [annotations] Oldest first.
 */

/** @typedef {{partition: number, owned: boolean, lag: number | null, watermark: string | null, idle: boolean, counted: number, late: number, rejected: Record<string, number>, wait: string | null}} PartitionStatus */
/** @typedef {{counted: number, late: number, rejected: number, lost_offsets: number, problems: string[], stopped: boolean, ready: boolean, other_sizes: string[], partitions: PartitionStatus[]}} Status */
/** @typedef {{window: Span, n: number, late: number, final: boolean, published: boolean, period?: boolean}} WindowState With `period`, several. */

/**
 * @typedef {object} Shown What all views are drawn from.
 * @property {Collection} collection
 * @property {WindowState[]} windows Oldest first.
 * @property {WindowState} window The window that is shown.
 * @property {WindowState} [compared] The window that it is compared with.
 * @property {Promise<ChangeAnswer | null>} change Since that window.
 * @property {Status} status
 * @property {string} method The method of its bounds, as chosen or by default.
 */

/**
 * @typedef {object} View
 * @property {string} id Of its tab and panel.
 * @property {(collection: Collection) => boolean} fits Whether it suits a collection.
 * @property {(shown: Shown, current: () => boolean) => Promise<Estimate | null>} update Fetch and
 *   draw, but do not draw once `current` is false. Returns the document of the window, or null.
 * @property {(collection: Collection) => boolean} [compares] Whether it compares two windows now.
 * @property {() => void} [restyle] Draw again in other colours.
 */

export {};

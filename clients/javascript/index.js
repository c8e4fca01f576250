// The device client of ldpstream for browsers and Node, without dependencies.
// The formats are those of docs/wire.md; tests/vectors holds the test vectors.

export { Collection } from "./src/collection.js";
export { SystemEntropy } from "./src/entropy.js";
export {
  BudgetError,
  LedgerError,
  SkippedError,
  SpecError,
  UploadError,
  ValueOutsideDomainError,
} from "./src/errors.js";
export { Ledger, postOnce } from "./src/ledger.js";
export { SUPPORTED } from "./src/mechanisms/index.js";
export { deviceSecret } from "./src/token.js";
export { FRAME_MEDIA_TYPE, post, uploadKey } from "./src/upload.js";

/** The controls of a wing, which EXECUTE runs: what they are made of, and where they are added. */
import type { Control, ControlSource, RemoteControls } from '../kernel/controls/control.ts'

export { formatScope } from '../../auth/permissions.ts'
export { type Bounds, checkBounds, WholePattern } from '../kernel/controls/bounds.ts'
export {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlParameter,
  type ControlResult,
  type ControlRun,
  type ControlSource,
  DRY_RUN_PARAMETER,
  failed,
  HIDDEN,
  KEY_PARAMETER,
  ON_BEHALF_OF_PARAMETER,
  ok,
  outcomes,
  REPEAT_ONLY_PARAMETER,
  type RemoteControl,
  type RemoteControls,
  reservedParameters,
} from '../kernel/controls/control.ts'
export { encodeResult } from '../kernel/controls/results.ts'
export { convertArguments, integers } from '../kernel/metrics/arguments.ts'
export { RecordList } from '../kernel/metrics/measure.ts'

/** Adds controls. Names, rights, quotas, the audit log, keys and dry runs are the executor's, and the same for all. */
export interface Controls {
  /** Adds controls that stay. */
  add(...controls: readonly Control[]): void
  /** Adds controls that come and go while the server runs. */
  follow(source: ControlSource): void
  /** Adds the controls of other producers, which are run there. */
  reach(remote: RemoteControls): void
}

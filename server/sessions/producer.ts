/** What a session and its commands need of the server around them. Made once, in `server.ts`. */
import type { Authenticator } from '../../auth/authenticator.ts'
import type { AccountBook } from '../accounts.ts'
import type { Bindings } from '../channels/bindings.ts'
import type { Journal } from '../channels/journal.ts'
import type { QueueHost } from '../channels/queue-state.ts'
import type { Registry } from '../channels/registry.ts'
import type { Turn } from '../channels/turn.ts'
import type { Clock } from '../clock.ts'
import type { Executor } from '../controls/executor.ts'
import type { Logger } from '../log.ts'
import type { Answers } from '../metrics/answers.ts'
import type { Ids } from '../metrics/ids.ts'
import type { Instances } from '../metrics/instances.ts'
import type { Measurements } from '../metrics/measurements.ts'

export interface Producer {
  readonly name: string
  readonly software: string
  readonly clock: Clock
  readonly log: Logger
  readonly turn: Turn
  readonly journal: Journal
  readonly host: QueueHost
  readonly registry: Registry
  readonly bindings: Bindings
  readonly instances: Instances
  readonly measurements: Measurements
  readonly ids: Ids
  readonly answers: Answers
  readonly executor: Executor
  readonly accounts: AccountBook
  readonly authenticator: Authenticator
}

/** What everything that runs in the server goes by: a clock, a log, work in steps, and errors. */

export { StorageError } from '../../storage/store.ts'
export type { Clock, Timer } from '../kernel/core/clock.ts'
export { isRefusal, MAX_DETAIL, StatusError } from '../kernel/core/errors.ts'
export { finish, type Party, type Steps } from '../kernel/core/fair-work.ts'
export { guarded } from '../kernel/core/faults.ts'
export type { Logger } from '../kernel/core/log.ts'

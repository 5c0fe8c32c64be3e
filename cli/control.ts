/** Runs a control and takes its result from the channel, so that no queue is left behind. */
import { type Arguments, BasicType, ConnectionError, type Consumer, type Value, VOID } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { whileWaiting } from './progress.ts'
import { fieldOf, type Record, recordsOf, textOf } from './records.ts'
import type { Terminal } from './terminal.ts'

export interface ControlResult {
  /** ok, failed, timeout, unknown or dry-run. */
  readonly outcome: string
  readonly detail: string
  readonly value: Value
  /** Microseconds since 1970. */
  readonly time: number
}

/** Throws Failure where the connection is lost meanwhile: what the control did is not known then. */
export async function runControl(consumer: Consumer, control: string, args: Arguments): Promise<ControlResult> {
  const { time, value } = await consumer.execute(control, args).catch((error: unknown) => {
    if (!(error instanceof ConnectionError)) throw error
    throw new Failure(ExitCode.UNKNOWN, `${control}: ${error.message}\n${LOST}`, { cause: error })
  })
  const record: Record = value.type === BasicType.REC ? value.value : []
  return {
    outcome: textOf(record, 'outcome') || 'unknown',
    detail: textOf(record, 'detail'),
    value: fieldOf(record, 'value') ?? VOID,
    time,
  }
}

const LOST =
  'Whether it ran is not known; `cinnabar audit` may tell. With `cinnabar exec --idempotency-key` trying again is safe'
const UNKNOWN =
  'Look whether it took effect: nobody else can tell. The same --idempotency-key does not run it again, another one does'

/** Throws Failure unless the control did what it was told. */
export function checkOutcome(control: string, { outcome, detail }: ControlResult): void {
  if (outcome === 'ok' || outcome === 'dry-run') return
  const said = `${control}: ${outcome}${detail ? `: ${detail}` : ''}`
  if (outcome !== 'unknown') throw new Failure(ExitCode.FAILED, said)
  throw new Failure(ExitCode.UNKNOWN, `${said}\n${UNKNOWN}`)
}

/** Runs a control and says what it did. */
export async function tellControl(
  terminal: Terminal,
  consumer: Consumer,
  control: string,
  args: Arguments,
): Promise<ControlResult> {
  const result = await whileWaiting(terminal, `${control} is running`, runControl(consumer, control, args))
  checkOutcome(control, result)
  if (result.detail) terminal.note(result.detail)
  return result
}

/** The records that a control lists. */
export async function listByControl(
  terminal: Terminal,
  consumer: Consumer,
  control: string,
  args: Arguments = {},
): Promise<readonly Record[]> {
  const result = await whileWaiting(terminal, `asking ${control}`, runControl(consumer, control, args))
  checkOutcome(control, result)
  return recordsOf(result.value)?.records ?? []
}

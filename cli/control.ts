/** Runs a control and takes its result from the channel, so that no queue is left behind. */
import { type Arguments, BasicType, type Consumer, type Value, VOID } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { fieldOf, type Record, textOf } from './records.ts'

export interface ControlResult {
  /** ok, failed, timeout, unknown or dry-run. */
  readonly outcome: string
  readonly detail: string
  readonly value: Value
  /** Microseconds since 1970. */
  readonly time: number
}

export async function runControl(consumer: Consumer, control: string, args: Arguments): Promise<ControlResult> {
  const { time, value } = await consumer.execute(control, args)
  const record: Record = value.type === BasicType.REC ? value.value : []
  return {
    outcome: textOf(record, 'outcome') || 'unknown',
    detail: textOf(record, 'detail'),
    value: fieldOf(record, 'value') ?? VOID,
    time,
  }
}

/** Throws Failure unless the control did what it was told. */
export function checkOutcome(control: string, { outcome, detail }: ControlResult): void {
  if (outcome === 'ok' || outcome === 'dry-run') return
  throw new Failure(ExitCode.FAILED, `${control}: ${outcome}${detail ? `: ${detail}` : ''}`)
}

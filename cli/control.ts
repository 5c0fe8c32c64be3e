/** Runs controls and reads their results from the client's channel, so that no queue stays on the server. */
import { type Arguments, ConnectionError, type Consumer, type Value, VOID } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import type { LoginOptions } from './login.ts'
import { type JsonOptions, type Listing, printList } from './output.ts'
import { fieldsOf, fieldText, findField, toRecords } from './records.ts'
import { type Cli, withConsumer } from './session.ts'
import { type Terminal, withProgress } from './terminal.ts'

/** Arguments with these names are secrets of every control. */
export const SECRET_ARGUMENTS: readonly string[] = ['password', 'secret', 'secrets', 'token']

export interface ControlOutcome {
  /** ok, failed, timeout, unknown, dry-run or refused. */
  readonly outcome: string
  readonly detail: string
  readonly value: Value
  /** Microseconds since 1970. */
  readonly time: number
}

const CONNECTION_LOST =
  'It is not known whether it ran; `cinnabar audit` may show it. With `cinnabar exec --idempotency-key` you can safely try again'
const OUTCOME_UNKNOWN =
  'Check whether it took effect: the server cannot tell. Repeating the call with the same --idempotency-key does not run the control again, with another key it does'

/** `onTaken` is called with the id of the result. Throws Failure if the connection is lost meanwhile: then it is not known what the control did. */
export async function runControl(
  consumer: Consumer,
  control: string,
  args: Arguments,
  onTaken?: (result: number) => void,
): Promise<ControlOutcome> {
  const { time, value } = await consumer.execute(control, args, { onTaken }).catch((error: unknown) => {
    if (!(error instanceof ConnectionError)) throw error
    throw new Failure(ExitCode.UNKNOWN, `${control}: ${error.message}\n${CONNECTION_LOST}`, { cause: error })
  })
  const record = fieldsOf(value)
  return {
    outcome: fieldText(record, 'outcome') || 'unknown',
    detail: fieldText(record, 'detail'),
    value: findField(record, 'value') ?? VOID,
    time,
  }
}

/** Throws Failure unless the control succeeded. */
export function checkOutcome(control: string, { outcome, detail }: ControlOutcome): void {
  if (outcome === 'ok' || outcome === 'dry-run') return
  const message = `${control}: ${outcome}${detail ? `: ${detail}` : ''}`
  if (outcome !== 'unknown') throw new Failure(ExitCode.FAILED, message)
  throw new Failure(ExitCode.UNKNOWN, `${message}\n${OUTCOME_UNKNOWN}`)
}

/** Runs a control and prints the detail of its result as a note. */
export async function runAndReport(
  terminal: Terminal,
  consumer: Consumer,
  control: string,
  args: Arguments,
): Promise<void> {
  const result = await withProgress(terminal, `${control} is running`, runControl(consumer, control, args))
  checkOutcome(control, result)
  if (result.detail) terminal.note(result.detail)
}

/** Connects for a single control. */
export function callControl(cli: Cli, options: LoginOptions, control: string, args: Arguments): Promise<void> {
  return withConsumer(cli, options, (consumer) => runAndReport(cli.terminal, consumer, control, args))
}

/** Connects and prints the records that a control lists. */
export function printControlList(
  cli: Cli,
  options: JsonOptions,
  control: string,
  listing: Listing,
  args: Arguments = {},
): Promise<void> {
  const { terminal } = cli
  return withConsumer(cli, options, async (consumer) => {
    const result = await withProgress(terminal, `waiting for ${control}`, runControl(consumer, control, args))
    checkOutcome(control, result)
    await printList(terminal, toRecords(result.value)?.records ?? [], options.json, listing)
  })
}

/** `cinnabar get`: the current values of metrics. */
import type { Command } from 'commander'
import { BasicType, type Consumer, type Field, type Sample, type Value, valueToJson } from '../../client/index.ts'
import { type Assignments, splitWords, toTypedArguments } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatMeasured, jsonText } from '../format.ts'
import { EXACT_OPTION, type JsonOptions, toJson, toText } from '../output.ts'
import {
  type AnswerRecord,
  awaited,
  findField,
  metricParameters,
  similarMetric,
  toRecords,
  unitsOf,
  unseen,
  withSuggestion,
} from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

interface GetOptions extends JsonOptions {
  readonly raw?: boolean
  readonly exact?: boolean
}

interface Answer {
  readonly metric: string
  readonly message: Pick<Sample, 'time' | 'value'>
}

/** `wallMs`: milliseconds since 1970. */
export function addGet(program: Command, cli: Cli, wallMs: () => number = Date.now): void {
  const { terminal } = cli
  withLoginOptions(program.command('get'))
    .description('print current values; exits with 1 if there is none, or if an answer is incomplete')
    .argument('<metric...>', "metrics, or several with *, and arguments for all of them: 'host.load.*' host=n1")
    .option('--raw', 'print only the values, one per line, as they are')
    .option(...EXACT_OPTION)
    .option('--json', 'print one JSON object per value, also for a loss; times in microseconds since 1970')
    .action(async (words: string[], options: GetOptions) => {
      const { names, assignments } = splitWords(words)
      if (names.length === 0) throw new Failure(ExitCode.USAGE, 'no metric is given')
      await withConsumer(cli, options, async (consumer) => {
        const isForPeople = !options.json && !options.raw
        const querying = Promise.all([
          Promise.all(names.map((metric) => query(consumer, metric, assignments))),
          isForPeople ? unitsOf(consumer, names) : () => '',
        ])
        const what = `waiting for a value of ${names.join(', ')}`
        const [answers, unitOf] = await withProgress(terminal, what, querying, () => awaited(consumer))
        const cut = answers.filter(({ message }) => toRecords(message.value)?.isCut)
        if (options.json) {
          const lost = cut.map(({ metric }) => ({ lost: 0, reason: 'too long', metric }))
          const objects = [...answers.flatMap(({ metric, message }) => toJson(metric, message)), ...lost]
          await terminal.print(objects.map((object) => jsonText(object)).join('\n'))
        } else if (options.raw) {
          await terminal.print(answers.flatMap(({ message }) => rawValues(message.value)).join('\n'))
        } else {
          const { colors, screen } = terminal
          const columns = screen?.size().columns
          const showing = { unitOf, colors, isExact: options.exact, nowMs: wallMs(), columns }
          await terminal.print(
            joined(answers)
              .map((one) => toText(one.metric, one.message, showing))
              .join('\n\n'),
          )
        }
        if (cut.length === 0) return
        const advice = 'query fewer metrics, hosts or objects at a time'
        throw new Failure(ExitCode.FAILED, `the answer is incomplete because it is too long: ${advice}`)
      })
    })
}

/** Rejects with Failure if there is no value. */
async function query(consumer: Consumer, metric: string, assignments: Assignments): Promise<Answer> {
  const args = await toTypedArguments(assignments, () => metricParameters(consumer, metric))
  const message = await withSuggestion(consumer, metric, consumer.query(metric, args))
  const request = [metric, ...Array.from(assignments, ([name, text]) => `${name}=${text}`)].join(' ')
  if (toRecords(message.value)?.records.length === 0) {
    const why = await awaited(consumer)
    const similar = (await unseen(consumer, metric).catch(() => false)) ? await similarMetric(consumer, metric) : ''
    throw new Failure(
      ExitCode.FAILED,
      `no value: nothing currently matches ${request}${why && `; ${why}`}${similar && `.${similar}`}`,
    )
  }
  if (message.value.type === BasicType.VOID) {
    throw new Failure(ExitCode.FAILED, `no value of ${request}: its source has sent none, or only old ones`)
  }
  return { metric, message }
}

/** Answers that have values, with their names, become one table; what is something else, such as a list of channels, stays. */
function joined(answers: readonly Answer[]): readonly Answer[] {
  if (answers.length === 1) return answers
  const items = answers.map((answer) => valueRecords(answer))
  const others = answers.filter((_, i) => items[i] === undefined)
  const records = items.flatMap((of) => of ?? [])
  if (records.length === 0) return others
  const time = Math.max(...answers.map(({ message }) => message.time))
  const value: Value = { type: BasicType.ARRAY, value: { element: BasicType.REC, items: records } }
  return [{ metric: '', message: { time, value } }, ...others]
}

/** The records {name, ..., time, value} of an answer; undefined if it is something else. */
function valueRecords({ metric, message: { time, value } }: Answer): readonly AnswerRecord[] | undefined {
  const list = toRecords(value)
  const name: Field = { name: 'name', type: BasicType.STRING, value: metric }
  const at: Field = { name: 'time', type: BasicType.UINT64, value: BigInt(time) }
  if (list === undefined) return value.type === BasicType.REC ? undefined : [[name, at, { name: 'value', ...value }]]
  if (!list.records.every((record) => findField(record, 'value'))) return undefined
  return list.records.map((record) => (findField(record, 'name') ? record : [name, ...record]))
}

/** Each value of an answer as a text without its unit; what is no single value, as JSON. */
function rawValues(value: Value): string[] {
  const values = toRecords(value)?.records.map((record): Value => {
    return findField(record, 'value') ?? { type: BasicType.REC, value: record }
  }) ?? [value]
  return values.map((one) => {
    const isPlain = one.type !== BasicType.REC && one.type !== BasicType.ARRAY
    return isPlain ? formatMeasured(one, '', true) : jsonText(valueToJson(one))
  })
}

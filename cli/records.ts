/** Reads answers that are lists: an ARRAY of REC, the last of which may be {boolean more = true}. */
import { type Arguments, BasicType, type Consumer, type Field, type Value } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { formatValue } from './output/text.ts'

export type Record = readonly Field[]

export interface Records {
  readonly records: readonly Record[]
  /** Whether something did not fit the answer. */
  readonly isCut: boolean
}

/** Undefined where the value is no list of records. */
export function recordsOf(value: Value): Records | undefined {
  if (value.type !== BasicType.ARRAY || value.value.element !== BasicType.REC) return undefined
  const records = value.value.items as readonly Record[]
  const isCut = fieldOf(records.at(-1) ?? [], 'more')?.value === true
  return { records: isCut ? records.slice(0, -1) : records, isCut }
}

export function fieldOf(record: Record, name: string): Field | undefined {
  return record.find((field) => field.name === name)
}

/** The field as people read it; empty where it is missing. */
export function textOf(record: Record, name: string): string {
  const field = fieldOf(record, name)
  return field ? formatValue(field) : ''
}

/** 0 where the field is missing or no number. */
export function numberOf(record: Record, name: string): number {
  return Number(fieldOf(record, name)?.value ?? 0)
}

/** Asks until nothing is cut off; `next` gives the arguments that go on behind a record. Throws Failure. */
export async function queryAll(
  consumer: Pick<Consumer, 'query'>,
  metric: string,
  args: Arguments,
  next: (last: Record) => Arguments,
): Promise<readonly Record[]> {
  const all: Record[] = []
  for (let from: Arguments = {}; ; ) {
    const { value } = await consumer.query(metric, { ...args, ...from })
    const page = recordsOf(value)
    if (!page) throw new Failure(ExitCode.FAILED, `${metric} gave no list, but ${formatValue(value)}`)
    all.push(...page.records)
    const last = page.records.at(-1)
    if (!page.isCut) return all
    if (!last) throw new Failure(ExitCode.FAILED, `${metric} holds a record that fits no answer`)
    from = next(last)
  }
}

/** What a control `<family>.list` gives, and which controls of the family this user may run. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import { recordsOf, untilAnswered, useQuery } from '../query.ts'
import { type Refusal, refusalOf } from '../refusals.ts'
import { type Control, controlOf } from './control-parameters.ts'

export interface Listing {
  /** Undefined until they are there. */
  readonly records: readonly PlainRecord[] | undefined
  /** Why there are none; undefined if there are some, or may come. */
  readonly refusal: Refusal | undefined
  /** Those that may be run, by name. */
  readonly controls: ReadonlyMap<string, Control>
  /** Whether `controls` has been answered. */
  readonly isKnown: boolean
  readonly reload: () => void
}

/** `isListed`: whether the list is asked for. */
export function useListing(consumer: Consumer, family: string, { isListed = true } = {}): Listing {
  const answer = useQuery(consumer, 'producer.controls', { match: `${family}.*` })
  const [round, setRound] = useState(0)
  const [list, setList] = useState<Pick<Listing, 'records' | 'refusal'>>({ records: undefined, refusal: undefined })
  useEffect(() => {
    if (!isListed) return undefined
    const abort = new AbortController()
    const { signal } = abort
    untilAnswered(consumer, signal, () => consumer.execute(`${family}.list`, {}, { signal })).then(
      ({ plain }) => {
        const { outcome, detail, value } = plain as PlainRecord
        if (outcome === 'ok') return setList({ records: recordsOf(value), refusal: undefined })
        const reason = [outcome, detail].filter(Boolean).join(': ')
        setList({ records: undefined, refusal: { reason, isByServer: false } })
      },
      (error: unknown) => {
        if (!signal.aborted) setList({ records: undefined, refusal: refusalOf(error) })
      },
    )
    return () => abort.abort()
  }, [consumer, family, isListed, round])
  const sample = answer.kind === 'answer' ? answer.sample : undefined
  const controls = useMemo(() => {
    return new Map(recordsOf(sample?.plain).map((record) => [String(record['name']), controlOf(record)]))
  }, [sample])
  return {
    ...list,
    refusal: answer.kind === 'refused' ? answer : list.refusal,
    controls,
    isKnown: sample !== undefined,
    reload: () => setRound((before) => before + 1),
  }
}

/** Empty if the field is no text. */
export function fieldText(record: PlainRecord, field: string): string {
  const value = record[field]
  return typeof value === 'string' ? value : ''
}

/** As people write it: without the tenant if that is `default`. */
export function userOf(record: PlainRecord): string {
  const [tenant, user] = [fieldText(record, 'tenant'), fieldText(record, 'user')]
  return tenant === 'default' ? user : `${tenant}/${user}`
}

/** One QUERY and its answer, as a view needs them. */
import { useEffect, useState } from 'preact/hooks'
import { ConnectionError, type Consumer, type PlainRecord, type Sample } from '../client/browser.ts'
import { type Refusal, refusalOf } from './refusals.ts'

export type Arguments = Readonly<Record<string, string | number | boolean | bigint>>

export type Answer =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'answer'; readonly sample: Sample }
  | ({ readonly kind: 'refused' } & Refusal)

/**
 * Asks when the view opens and whenever the arguments change, `delayMs` after the last change. The previous answer stays until the
 * next one is there; a lost connection is no answer. `round`: another number asks again.
 */
export function useQuery(consumer: Consumer, metric: string, args: Arguments, { delayMs = 0, round = 0 } = {}): Answer {
  const [answer, setAnswer] = useState<Answer>({ kind: 'waiting' })
  const question = JSON.stringify([metric, args], (_, part) => (typeof part === 'bigint' ? `${part}n` : part))
  useEffect(() => {
    const abort = new AbortController()
    const timer = setTimeout(() => {
      const { signal } = abort
      untilAnswered(consumer, signal, () => consumer.query(metric, args, { signal })).then(
        (sample) => setAnswer({ kind: 'answer', sample }),
        (error: unknown) => {
          if (!abort.signal.aborted) setAnswer({ kind: 'refused', ...refusalOf(error) })
        },
      )
    }, delayMs)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, question, round])
  return answer
}

/** Whether a list of the server names something for this user: a control that may be run, a metric that may be read. */
export function useIsListed(consumer: Consumer, list: 'producer.controls' | 'producer.metrics', name: string): boolean {
  const answer = useQuery(consumer, list, { match: name })
  return answer.kind === 'answer' && recordsOf(answer.sample.plain).length > 0
}

/**
 * Asks, and asks again whenever a connection was lost before the answer. Rejects with what the server refuses, and with the reason of
 * `signal` once that is aborted.
 */
export async function untilAnswered<T>(consumer: Consumer, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (signal.aborted || !(error instanceof ConnectionError)) throw error
      // A timeout takes its time, so that there is no haste in asking again.
      if (error.code !== 'TIMEOUT' || consumer.capabilities === undefined) await nextConnection(consumer, signal)
    }
  }
}

function nextConnection(consumer: Consumer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      remove()
      reject(signal.reason)
    }
    const remove = consumer.on('connected', () => {
      remove()
      signal.removeEventListener('abort', abort)
      resolve()
    })
    signal.addEventListener('abort', abort)
  })
}

/** The RECs of an answer, without the last one that says whether there is more. */
export function recordsOf(plain: unknown): readonly PlainRecord[] {
  return Array.isArray(plain) ? (plain as readonly PlainRecord[]).filter((record) => record['more'] !== true) : []
}

/** Whether something did not fit into the list. */
export function hasMore(plain: unknown): boolean {
  return Array.isArray(plain) && (plain as readonly PlainRecord[]).at(-1)?.['more'] === true
}

/**
 * The RECs of an answer that comes in pages, page by page. `ask` is given the place after which a page begins, for the first one
 * `first`. It is the field `after` of the last REC of the page before, or where that has none, the field `key` of its last entry.
 */
export async function* pagesOf(
  ask: (after: string) => Promise<Pick<Sample, 'plain'>>,
  { first = '', key = '' } = {},
): AsyncGenerator<readonly PlainRecord[]> {
  for (let after = first; ; ) {
    const { plain } = await ask(after)
    const records = recordsOf(plain)
    yield records
    if (!hasMore(plain)) return
    const place = (plain as readonly PlainRecord[]).at(-1)?.['after'] ?? records.at(-1)?.[key]
    if (place === undefined) return
    after = String(place)
  }
}

/** What the server remembers of a host from which nothing comes any more: which of the metrics that charts of a host draw. */
import { useEffect, useState } from 'preact/hooks'
import type { Consumer } from '../client/browser.ts'
import { chartSources } from './host-charts.ts'
import { recordsOf, untilAnswered } from './query.ts'

const SELECT = 'producer.history.select'

/** Asked once, while it is wanted; undefined until it is known. */
export function useRememberedHost(
  consumer: Consumer,
  host: string,
  isWanted: boolean,
): ReadonlySet<string> | undefined {
  const [found, setFound] = useState<{ readonly host: string; readonly metrics: ReadonlySet<string> }>()
  useEffect(() => {
    if (!isWanted) return
    const abort = new AbortController()
    rememberedOf(consumer, host, abort.signal).then(
      (metrics) => setFound({ host, metrics }),
      () => {},
    )
    return () => abort.abort()
  }, [consumer, host, isWanted])
  return isWanted && found?.host === host ? found.metrics : undefined
}

/** Of each source the first metric says whether it had the host. Rejects with what the server refuses. */
export async function rememberedOf(
  consumer: Pick<Consumer, 'query' | 'on' | 'capabilities'>,
  host: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const metrics = new Set<string>()
  for (const source of chartSources()) {
    const args = { metric: source[0] as string, host, from: 0n }
    // The first answer is enough: whether there is anything.
    const { plain } = await untilAnswered(consumer as Consumer, signal, () => consumer.query(SELECT, args, { signal }))
    if (recordsOf(plain).length > 0) for (const metric of source) metrics.add(metric)
  }
  return metrics
}

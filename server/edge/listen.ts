/** Opens the listeners that consumers connect to. The Monitoring Protocol over TCP comes last. */
import type { Address } from '../kernel/core/address.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { SessionContext } from '../kernel/sessions/context.ts'
import type { Sessions } from '../kernel/sessions/sessions.ts'
import type { OpenDoor } from '../kit/door.ts'
import type { RememberedHistory } from '../kit/history.ts'
import type { ShownRuleGroups } from '../kit/rules.ts'
import type { HttpSection, ListenSection, MetricsSection, QuerySection } from './config.ts'
import type { AcknowledgingServices } from './http/acknowledging.ts'
import { type Health, listenHttp } from './http/app.ts'
import type { MetricsServices } from './http/metrics/route.ts'
import type { CatalogueServices, QueryApi } from './http/query/route.ts'
import type { ListenerName, TakePassed } from './passed-on.ts'
import type { QueryOutcomes } from './query/outcomes.ts'
import type { QueryThread } from './query/thread/query-thread.ts'
import type { QueryTurns } from './query/turns.ts'
import { type ConsumerListener, listenTcp } from './tcp.ts'
import type { TlsFiles } from './tls/files.ts'

export interface Listeners {
  readonly tcp: Address | undefined
  readonly tls: Address | undefined
  readonly http: Address | undefined
  readonly https: Address | undefined
  /** Those that are open, each as it takes connections that another node passes on. */
  readonly passedOn: ReadonlyMap<ListenerName, TakePassed>
}

export interface ListenersOptions {
  readonly config: {
    readonly listen: ListenSection
    readonly producer: { readonly dataDir: string }
  }
  /** The section in force. */
  readonly http: () => HttpSection
  readonly metrics: () => MetricsSection
  readonly query: () => QuerySection
  readonly turns: QueryTurns
  readonly thread: QueryThread
  readonly outcomes: QueryOutcomes
  /** What is remembered; undefined if nothing is. */
  readonly remembered: RememberedHistory | undefined
  /** The rules over it; undefined if nothing evaluates any. */
  readonly rules: readonly ShownRuleGroups[]
  /** What takes acknowledgements of alerts; undefined if nothing does. */
  readonly acknowledging: AcknowledgingServices['acknowledging']
  readonly tls: TlsFiles | undefined
  readonly sessions: Pick<Sessions, 'accept' | 'admission'>
  readonly context: SessionContext & MetricsServices & CatalogueServices & AcknowledgingServices['context']
  /** Where programs POST metrics. */
  readonly doors: readonly OpenDoor[]
  readonly clock: Clock
  readonly log: Logger
  readonly storage: { readonly state: string }
  readonly openFiles: { readonly problem: string | undefined }
  /** Called with the function that ends a listener, as soon as the listener is open. */
  readonly opened: (end: () => Promise<void>) => void
}

/** Rejects with ListenError; listeners that are open by then stay open. */
export async function openListeners(options: ListenersOptions): Promise<Listeners> {
  const { config, tls, sessions, clock, opened } = options
  const { listen } = config
  const passedOn = new Map<ListenerName, TakePassed>()
  const { query, turns, thread, outcomes, remembered, rules } = options
  const queries = { history: remembered, rules, turns, thread, outcomes, section: query }
  let areOpen = false
  const health: Health = { unready: () => (areOpen ? problemOf(options) : 'starting: not all listeners are open yet') }
  const open = async (
    name: ListenerName,
    listening: Promise<ConsumerListener> | undefined,
  ): Promise<Address | undefined> => {
    const listener = await listening
    if (listener === undefined) return undefined
    opened(() => listener.close())
    passedOn.set(name, listener.take)
    return listener.address
  }
  const http = await open(
    'http',
    listen.http && openHttp(options, { address: listen.http, key: 'listen.http', health, queries }),
  )
  const https = await open(
    'https',
    listen.https && openHttp(options, { address: listen.https, key: 'listen.https', health, queries, tls }),
  )
  const over = { tls, clock, accept: sessions.accept.bind(sessions) }
  const overTls = await open('tls', listen.tls && listenTcp({ ...over, address: listen.tls, key: 'listen.tls' }))
  const tcp = await open('tcp', listen.tcp && listenTcp({ ...over, address: listen.tcp, key: 'listen.tcp' }))
  areOpen = true
  return { tcp, tls: overTls, http, https, passedOn }
}

/** Why no values are taken, or no connections; undefined if they are. */
function problemOf({ storage, openFiles }: ListenersOptions): string | undefined {
  if (storage.state !== 'ok') return `storage: ${storage.state}`
  return openFiles.problem && `files: ${openFiles.problem}`
}

function openHttp(
  { config: { producer }, http, metrics, sessions, context, doors, acknowledging, clock, log }: ListenersOptions,
  where: {
    readonly address: Address
    readonly key: 'listen.http' | 'listen.https'
    readonly health: Health
    readonly queries: QueryApi
    readonly tls?: TlsFiles | undefined
  },
): Promise<ConsumerListener> {
  return listenHttp({
    ...where,
    get allowedOrigins() {
      return http().allowedOrigins
    },
    get hosts() {
      return http().hosts
    },
    admission: sessions.admission,
    requestsPerMinute: http().requestsPerMinute,
    pages: { directory: http().pages, dataDir: producer.dataDir },
    console: http().console,
    context,
    openTo: () => metrics().openTo,
    doors,
    acknowledging,
    clock,
    accept: (arrival) => sessions.accept(arrival),
    failed: (error) => log.error({ err: error }, 'a WebSocket connection failed'),
  })
}

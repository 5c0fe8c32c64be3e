/** Opens the listeners that consumers connect to. The Monitoring Protocol over TCP comes last. */
import type { Address, Config } from '../config/config.ts'
import type { Parts } from '../start/parts.ts'
import { listenHttp } from './http/app.ts'
import { listenTcp, type OpenListener } from './tcp.ts'
import type { TlsFiles } from './tls/files.ts'

export interface Listeners {
  readonly tcp: Address | undefined
  readonly tls: Address | undefined
  readonly http: Address | undefined
  readonly https: Address | undefined
}

/** Calls `opened` with the function that ends each listener. Rejects with ListenError; listeners that are open by then stay open. */
export async function openListeners(
  config: Config,
  parts: Parts,
  tls: TlsFiles | undefined,
  opened: (end: () => Promise<void>) => void,
): Promise<Listeners> {
  const { listen } = config
  const open = async (listening: Promise<OpenListener> | undefined): Promise<Address | undefined> => {
    const listener = await listening
    if (listener) opened(() => listener.close())
    return listener?.address
  }
  const http = await open(listen.http && openHttp(config, parts, { address: listen.http, key: 'listen.http' }))
  const https = await open(listen.https && openHttp(config, parts, { address: listen.https, key: 'listen.https', tls }))
  const accept = parts.sessions.accept.bind(parts.sessions)
  const overTls = await open(listen.tls && listenTcp({ address: listen.tls, key: 'listen.tls', tls, accept }))
  const tcp = await open(listen.tcp && listenTcp({ address: listen.tcp, key: 'listen.tcp', tls, accept }))
  return { tcp, tls: overTls, http, https }
}

function openHttp(
  { http, producer: { dataDir } }: Config,
  { producer, sessions, storage }: Parts,
  where: {
    readonly address: Address
    readonly key: 'listen.http' | 'listen.https'
    readonly tls?: TlsFiles | undefined
  },
): Promise<OpenListener> {
  return listenHttp({
    ...where,
    allowedOrigins: http.allowedOrigins,
    requestsPerMinute: http.requestsPerMinute,
    pages: { directory: http.pages, dataDir },
    clock: producer.clock,
    accept: (arrival) => sessions.accept(arrival),
    failed: (error) => producer.log.error({ err: error }, 'a WebSocket connection failed'),
    health: { unready: () => (storage() === 'ok' ? undefined : `storage: ${storage()}`) },
  })
}

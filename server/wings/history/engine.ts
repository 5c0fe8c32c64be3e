/** Another server that answers expressions in place of this one's history: VictoriaMetrics, Mimir, Thanos (docs/history.md). */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { EngineAnswer, HistoryEngine } from '../../kit/history.ts'
import { authorizationFrom, tlsFrom } from '../../kit/io/address.ts'
import type { EngineKeys } from './config.ts'
import type { HistoryReader, ReadableServices } from './readable.ts'

const FORM = 'application/x-www-form-urlencoded'

export class RemoteEngine implements HistoryEngine {
  readonly #keys: EngineKeys
  readonly #readRights: ReadableServices['readRights']

  constructor(keys: EngineKeys, readRights: ReadableServices['readRights']) {
    this.#keys = keys
    this.#readRights = readRights
  }

  /** No matcher says what rules say: who may not read all is refused. */
  scopeOf(reader: HistoryReader): { readonly label: string; readonly text: string } | undefined {
    if (!this.#readRights(reader).mayReadAll()) return undefined
    return { label: this.#keys.tenantLabel, text: reader.tenant }
  }

  /** Redirects are not followed: it is asked where the configuration says. Rejects if there is no answer, or if a file cannot be read. */
  async ask(path: string, form: URLSearchParams, signal: AbortSignal): Promise<EngineAnswer> {
    const { href } = this.#keys
    const url = new URL(href)
    url.pathname = `${url.pathname.replace(/\/$/, '')}/api/v1/${path}`
    const isTls = url.protocol === 'https:'
    const [authorization, tls] = await Promise.all([
      authorizationFrom(this.#keys),
      isTls ? tlsFrom(this.#keys, url.hostname) : {},
    ])
    // Texts of labels are the one thing that Prometheus, Thanos and Mimir do not give to a form.
    const isForm = !path.startsWith('label/')
    if (!isForm) url.search = form.toString()
    const body = Buffer.from(isForm ? form.toString() : '')
    const headers = {
      accept: 'application/json',
      'user-agent': 'cinnabar',
      ...(isForm && { 'content-type': FORM, 'content-length': String(body.length) }),
      ...(authorization !== undefined && { authorization }),
    }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { method: isForm ? 'POST' : 'GET', headers, signal, ...tls }
      const request = (isTls ? httpsRequest : httpRequest)(url, options, resolve)
      request.once('error', reject)
      request.end(body)
    })
    return { status: response.statusCode ?? 0, pieces: response }
  }
}

/** Another server that answers expressions in place of this one's history: VictoriaMetrics, Mimir, Thanos (docs/history.md). */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { EngineAnswer, HistoryEngine } from '../../kit/history.ts'
import { authorizationFrom, tlsFrom } from '../../kit/io/address.ts'
import type { Kit } from '../../kit/kit.ts'
import type { EngineKeys } from './config.ts'
import type { HistoryReader, ReadableServices } from './readable.ts'

const FORM = 'application/x-www-form-urlencoded'

export class RemoteEngine implements HistoryEngine {
  readonly #keys: EngineKeys
  readonly #readRights: ReadableServices['readRights']
  readonly #log: Pick<Kit['log'], 'warn' | 'info'>
  /** Why it gave no answer the last time that it was asked; empty if it gave one. */
  #problem = ''

  constructor(keys: EngineKeys, readRights: ReadableServices['readRights'], log: Pick<Kit['log'], 'warn' | 'info'>) {
    this.#keys = keys
    this.#readRights = readRights
    this.#log = log
  }

  /** No matcher says what rules say: who may not read all is refused. */
  scopeOf(reader: HistoryReader): { readonly label: string; readonly text: string } | undefined {
    if (!this.#readRights(reader).mayReadAll()) return undefined
    return { label: this.#keys.tenantLabel, text: reader.tenant }
  }

  /**
   * Redirects are not followed: it is asked where the configuration says. Rejects if there is no answer, or if a file cannot be read: the
   * log has the reason, and whoever asks its code, as addresses and paths of files are none of a tenant's business.
   */
  async ask(path: string, form: URLSearchParams, signal: AbortSignal): Promise<EngineAnswer> {
    try {
      const answer = await this.#ask(path, form, signal)
      if (this.#problem !== '') this.#log.info('history.engine answers again')
      this.#problem = ''
      return answer
    } catch (error) {
      if (signal.aborted) throw error
      const { code = 'unknown', message } = Object(error) as { readonly code?: string; readonly message?: string }
      const problem = String(message)
      if (problem !== this.#problem) this.#log.warn({ problem }, 'history.engine gives no answer')
      this.#problem = problem
      throw new Error(`${code}; the log of the server says more`)
    }
  }

  async #ask(path: string, form: URLSearchParams, signal: AbortSignal): Promise<EngineAnswer> {
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

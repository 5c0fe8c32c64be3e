/** Addresses as one writes them, and how each is spoken to. */
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { openJson } from './json-speaker.ts'
import { type KeyPair, Listener } from './listener.ts'
import { checkIsProducer, Offer } from './offer.ts'
import { SaltedPasswords } from './scram.ts'
import type { Script, Way } from './script.ts'
import { type Credentials, Failure, Stage, type Target } from './stage.ts'
import { openTcp, openTls, openWebSocket } from './xdr-speaker.ts'

export interface TargetOptions {
  readonly user: Credentials
  readonly other?: Credentials | undefined
  /** A token of `user`. */
  readonly token?: string | undefined
  /** A client certificate of `user`. */
  readonly certificate?: KeyPair | undefined
  /** Authorities that the producer's certificate is verified with, PEM; those of Node, if left out. */
  readonly ca?: string | undefined
  /** Where the producer is asked to connect to. */
  readonly dial?: { readonly host: string; readonly port: number; readonly certificate?: KeyPair | undefined }
  readonly polled?: string
  /** How long a step waits for what it expects. */
  readonly patienceMs?: number
  readonly byteByByte?: boolean
}

const POLLED = 'host.load.one'
const PATIENCE_MS = 15_000
const ANYWHERE = { host: '127.0.0.1', port: 0, certificate: undefined }

/** The ways in which an address can be tested. `subprotocol`: only that one. Throws Error. */
export function waysOf(address: string, subprotocol: string | undefined): Way[] {
  const { protocol, port } = new URL(address)
  if (protocol === 'tcp:' || protocol === 'tls:') {
    if (port === '') throw new Error(`${address} has no port`)
    if (subprotocol !== undefined) throw new Error('--subprotocol is for ws:// and wss://')
    return ['tcp']
  }
  if (protocol !== 'ws:' && protocol !== 'wss:')
    throw new Error(`${address} is neither tcp:// nor tls:// nor ws:// nor wss://`)
  if (subprotocol === undefined) return ['ws-xdr', 'ws-json']
  if (subprotocol === 'monitoring.xdr') return ['ws-xdr']
  if (subprotocol === 'monitoring.json') return ['ws-json']
  throw new Error(`--subprotocol is monitoring.xdr or monitoring.json, not ${subprotocol}`)
}

function targetOf(address: string, way: Way, options: TargetOptions): Target {
  const { user, other, token, certificate, ca, dial = ANYWHERE, polled = POLLED } = options
  const { patienceMs = PATIENCE_MS, byteByByte = false } = options
  const xdr = { patienceMs, byteByByte }
  const { protocol, hostname, port } = new URL(address)
  const host = hostname.replace(/^\[|\]$/g, '')
  const isSecure = protocol === 'tls:' || protocol === 'wss:'
  const tls = (isShown: boolean): ConnectionOptions => ({
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ...(isShown ? certificate : {}),
  })
  return {
    open: (isShown) => {
      if (way === 'ws-json') return openJson(address, patienceMs, isSecure ? tls(isShown) : {})
      if (way === 'ws-xdr') return openWebSocket(address, isSecure ? tls(isShown) : {}, xdr)
      if (isSecure) return openTls({ ...tls(isShown), port: Number(port) }, xdr)
      return openTcp(host, Number(port), xdr)
    },
    listen: () => Listener.open(way, { ...xdr, ...dial, certificate: isSecure ? dial.certificate : undefined }),
    ...{
      isSecure,
      tls,
      user,
      other,
      token,
      polled,
      passwords: new SaltedPasswords(),
      hasCertificate: certificate !== undefined,
      hasAuthorities: ca !== undefined,
    },
  }
}

export interface Outcome {
  readonly script: Script
  readonly way: Way
  /** What the address and the way are called together: `tcp`, `wss-json`. */
  readonly over: string
  readonly result: 'ok' | 'failed' | 'not applicable'
  /** Why it does not apply, or what went wrong where nothing could be compared. */
  readonly why?: string | undefined
  readonly failure?: Failure
  /** True if it does not apply since something is missing that it needs. */
  readonly isMissing?: boolean
}

/** Plays scripts against one address in one way. */
export class Run {
  readonly #target: Target
  readonly #offer: Offer
  readonly way: Way
  readonly over: string

  private constructor(target: Target, way: Way) {
    this.#target = target
    this.#offer = new Offer(target)
    this.way = way
    this.over = target.isSecure ? way.replace('tcp', 'tls').replace('ws-', 'wss-') : way
  }

  /** Rejects if nobody can be reached there, or what answers is no producer. */
  static async begin(address: string, way: Way, options: TargetOptions): Promise<Run> {
    const target = targetOf(address, way, options)
    await checkIsProducer(target.open).catch((error: Error) => {
      throw new Error(`${address} cannot be tried: ${error.message}`)
    })
    return new Run(target, way)
  }

  async play(script: Script): Promise<Outcome> {
    const { way, over } = this
    const outcome = { script, way, over }
    if (!script.ways.includes(way))
      return { ...outcome, result: 'not applicable', why: `only ${script.ways.join(', ')}` }
    try {
      const missing = await this.#offer.missing(script.needs)
      if (missing !== undefined) return { ...outcome, result: 'not applicable', why: missing, isMissing: true }
    } catch (error) {
      return failed(outcome, error)
    }
    const stage = new Stage(this.#target)
    try {
      for (const step of script.steps) await stage.play(step)
      return { ...outcome, result: 'ok' }
    } catch (error) {
      return failed(outcome, error)
    } finally {
      await stage.clear().catch(() => {})
    }
  }
}

function failed(outcome: Pick<Outcome, 'script' | 'way' | 'over'>, error: unknown): Outcome {
  if (error instanceof Failure) return { ...outcome, result: 'failed', failure: error }
  return { ...outcome, result: 'failed', why: (error as Error).message }
}

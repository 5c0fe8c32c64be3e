/** Addresses as one writes them, and how each is spoken to. */
import { openJson } from './json-speaker.ts'
import { Offer, readCapabilities } from './offer.ts'
import type { Script, Way } from './script.ts'
import type { Speaker } from './speaker.ts'
import { type Credentials, Failure, Stage, type Target } from './stage.ts'
import { openTcp, openWebSocket } from './xdr-speaker.ts'

export interface TargetOptions {
  readonly user: Credentials
  readonly other?: Credentials | undefined
  readonly polled?: string
  /** How long a step waits for what it expects. */
  readonly patienceMs?: number
  readonly byteByByte?: boolean
}

const POLLED = 'host.load.one'
const PATIENCE_MS = 15_000

/** The ways in which an address can be tested. `subprotocol`: only that one. Throws Error. */
export function waysOf(address: string, subprotocol: string | undefined): Way[] {
  const { protocol, port } = new URL(address)
  if (protocol === 'tcp:') {
    if (port === '') throw new Error(`${address} has no port`)
    if (subprotocol !== undefined) throw new Error('--subprotocol is for ws:// and wss://')
    return ['tcp']
  }
  if (protocol !== 'ws:' && protocol !== 'wss:') throw new Error(`${address} is neither tcp:// nor ws://`)
  if (subprotocol === undefined) return ['ws-xdr', 'ws-json']
  if (subprotocol === 'monitoring.xdr') return ['ws-xdr']
  if (subprotocol === 'monitoring.json') return ['ws-json']
  throw new Error(`--subprotocol is monitoring.xdr or monitoring.json, not ${subprotocol}`)
}

function opener(address: string, way: Way, patienceMs: number, byteByByte: boolean): () => Promise<Speaker> {
  if (way === 'ws-json') return () => openJson(address, patienceMs)
  if (way === 'ws-xdr') return () => openWebSocket(address, { patienceMs, byteByByte })
  const { hostname, port } = new URL(address)
  return () => openTcp(hostname.replace(/^\[|\]$/g, ''), Number(port), { patienceMs, byteByByte })
}

export interface Outcome {
  readonly script: Script
  readonly way: Way
  readonly result: 'ok' | 'failed' | 'not applicable'
  /** Why it does not apply, or what went wrong where nothing could be compared. */
  readonly why?: string | undefined
  readonly failure?: Failure
}

/** Plays scripts against one address in one way. */
export class Run {
  readonly #target: Target
  readonly #offer: Offer
  readonly way: Way

  private constructor(target: Target, offer: Offer, way: Way) {
    this.#target = target
    this.#offer = offer
    this.way = way
  }

  /** Rejects if nobody can be reached there, or what answers is no producer. */
  static async begin(address: string, way: Way, options: TargetOptions): Promise<Run> {
    const { user, other, polled = POLLED, patienceMs = PATIENCE_MS, byteByByte = false } = options
    const open = opener(address, way, patienceMs, byteByByte)
    const capabilities = await readCapabilities(open).catch((error: Error) => {
      throw new Error(`${address} cannot be tried: ${error.message}`)
    })
    const target: Target = { open, user, other, polled }
    return new Run(target, new Offer(target, capabilities), way)
  }

  async play(script: Script): Promise<Outcome> {
    const { way } = this
    if (!script.ways.includes(way))
      return { script, way, result: 'not applicable', why: `only ${script.ways.join(', ')}` }
    try {
      const missing = await this.#offer.missing(script.needs)
      if (missing !== undefined) return { script, way, result: 'not applicable', why: missing }
    } catch (error) {
      return failed(script, way, error)
    }
    const stage = new Stage(this.#target)
    try {
      for (const step of script.steps) await stage.play(step)
      return { script, way, result: 'ok' }
    } catch (error) {
      return failed(script, way, error)
    } finally {
      await stage.clear().catch(() => {})
    }
  }
}

function failed(script: Script, way: Way, error: unknown): Outcome {
  if (error instanceof Failure) return { script, way, result: 'failed', failure: error }
  return { script, way, result: 'failed', why: (error as Error).message }
}

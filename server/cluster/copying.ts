/**
 * Copies of the leader's database in the place of the own one: because the log no longer has what that needs, or because an
 * operator asks for it. What was here before is set aside when a copy is whole, and never deleted.
 */
import type { ClusterNodeOptions, Received } from './node-options.ts'
import type { Reports } from './reports.ts'

/** A copy, the last that was asked for or needed, for the command line. */
export interface CopyState {
  /** `none`: there was none since the process began. */
  readonly phase: 'none' | 'asked' | 'copying' | 'done' | 'failed'
  /** The node that it comes from. */
  readonly leader: string
  readonly receivedBytes: number
  readonly totalBytes: number
  /** Where the database is that was here before; "" if there was none. */
  readonly aside: string
  /** Why it failed, as a sentence. */
  readonly problem: string
}

const NONE: CopyState = { phase: 'none', leader: '', receivedBytes: 0, totalBytes: 0, aside: '', problem: '' }
const MIB = 2 ** 20

export interface CopyingOptions extends Pick<ClusterNodeOptions, 'config' | 'copy' | 'log'> {
  readonly reports: Reports
}

export class Copying {
  readonly #options: CopyingOptions
  #state = NONE
  #underWay: AbortController | undefined

  constructor(options: CopyingOptions) {
    this.#options = options
  }

  get state(): CopyState {
    return this.#state
  }

  /** An operator wants one, and it has not begun. */
  get isAsked(): boolean {
    return this.#state.phase === 'asked'
  }

  /** What the node is busy with, as a sentence; undefined if there is no copy under way. */
  get obstacle(): string | undefined {
    const { phase, leader, receivedBytes, totalBytes } = this.#state
    if (phase !== 'asked' && phase !== 'copying') return undefined
    const [received, total] = [receivedBytes, totalBytes].map((bytes) => Math.ceil(bytes / MIB))
    return `it copies the database of ${leader}${total ? `: ${received} of ${total} MiB` : ''}`
  }

  /** Why a node needs a copy, as a sentence, and why there was none the last time. */
  neededBy(isForeign: boolean): string {
    const why = isForeign
      ? 'its own is not part of the log (if no node can lead, `cinnabar cluster found` on one of them keeps that of it)'
      : 'the log does not have what it needs'
    const { phase, leader, problem } = this.#state
    const failure = phase === 'failed' ? `; that of ${leader} could not be copied: ${problem}` : ''
    return `it needs a copy of a database: ${why}${failure}`
  }

  /** Throws if there is one already. */
  ask(leader: string): void {
    const { phase, leader: from } = this.#state
    if (phase === 'asked' || phase === 'copying') throw new Error(`the database of ${from} is being copied already`)
    this.#state = { ...NONE, phase: 'asked', leader }
  }

  /**
   * Copies the database of `leader`; `why` is what was wrong with the own one, as a part of a sentence. Returns whether there is a
   * copy now; otherwise nothing is changed.
   */
  async run(leader: string | undefined, why: string, signal: AbortSignal): Promise<boolean> {
    const { config, copy, log, reports } = this.#options
    if (leader === undefined) {
      if (this.isAsked) this.#failed('no node leads any more')
      return false
    }
    this.#state = { ...NONE, phase: 'copying', leader }
    const underWay = new AbortController()
    this.#underWay = underWay
    const progress = (received: Received): void => {
      this.#state = { ...this.#state, ...received }
    }
    try {
      const aside = await copy(leader, progress, AbortSignal.any([signal, underWay.signal]))
      this.#state = { ...this.#state, phase: 'done', aside: aside ?? '' }
      reports.setAside(why, aside)
      log.info(`node ${config.node} has a copy of the database of node ${leader}`)
      return true
    } catch (error) {
      this.#failed(error instanceof Error ? error.message : String(error))
      log.warn({ err: error }, `the database of node ${leader} could not be copied`)
      return false
    }
  }

  /** Gives a copy up whose leader leads no more: it may have ended before it answered. To be called several times a lease. */
  followLeader(leader: string | undefined): void {
    if (this.#state.phase === 'copying' && this.#state.leader !== leader) this.#underWay?.abort()
  }

  #failed(problem: string): void {
    this.#state = { ...this.#state, phase: 'failed', problem }
  }
}

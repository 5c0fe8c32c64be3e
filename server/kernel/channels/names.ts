/**
 * The names of channels [MON 8.1]: each is unique among the channels of its identity. The name of a channel that was deleted, and
 * not by its owner, is remembered until the next channel of that name reports the loss.
 */
import { nameProblem } from '../../../protocol/monitor/value.ts'
import type { Change, LostNameRow } from '../../../storage/store.ts'
import type { Channel } from './channel.ts'

/** Why a channel is gone although its owner did not delete it. */
export type LossOfChannel = LostNameRow['reason']

/** The lost names that are remembered of one identity; beyond that the oldest is forgotten, and counted. */
const MAX_LOST_NAMES = 1024

/** The defect of a name, or undefined if there is none. One of digits only could be mistaken for an id. */
export function channelNameProblem(name: string): string | undefined {
  return /^\d+$/.test(name) ? 'a name that could be an id: add a letter' : nameProblem(name)
}

export class ChannelNames {
  readonly #change: (change: Change) => void
  readonly #channels = new Map<string, Channel>()
  /** By user, then by name, the oldest first. */
  readonly #lost = new Map<number, Map<string, LossOfChannel>>()
  #forgotten = 0

  constructor(lost: readonly LostNameRow[], change: (change: Change) => void) {
    this.#change = change
    for (const { user, name, reason } of lost) this.#lostOf(user).set(name, reason)
  }

  /** The lost names that found no place since the start: nothing reports the losses of these channels. */
  get forgotten(): number {
    return this.#forgotten
  }

  find(user: number, name: string): Channel | undefined {
    return this.#channels.get(keyOf(user, name))
  }

  add(channel: Channel): void {
    const { name, user } = channel.row
    if (name !== '') this.#channels.set(keyOf(user, name), channel)
  }

  /** The channel is deleted; `loss` is why, unless its owner did it or is gone. */
  remove({ row: { name, user } }: Channel, loss: LossOfChannel | undefined): void {
    if (name === '') return
    this.#channels.delete(keyOf(user, name))
    if (loss === undefined) return
    const lost = this.#lostOf(user)
    lost.set(name, loss)
    this.#change({ put: 'lost name', row: { user, name, reason: loss } })
    for (const oldest of lost.keys()) {
      if (lost.size <= MAX_LOST_NAMES) break
      this.#forgotten++
      this.#forget(user, oldest)
    }
  }

  /** Why the last channel of this name is gone; undefined if its owner knows, or there was none. */
  lossOf(user: number, name: string): LossOfChannel | undefined {
    return this.#lost.get(user)?.get(name)
  }

  /** The owner of a name knows of the loss, or will not miss the report of it any more. */
  forgetLoss(user: number, name: string): void {
    if (this.lossOf(user, name) !== undefined) this.#forget(user, name)
  }

  /** The user was removed, and the store has forgotten its names with it. */
  forgetUser(user: number): void {
    this.#lost.delete(user)
  }

  #lostOf(user: number): Map<string, LossOfChannel> {
    const lost = this.#lost.get(user) ?? new Map<string, LossOfChannel>()
    this.#lost.set(user, lost)
    return lost
  }

  #forget(user: number, name: string): void {
    const lost = this.#lost.get(user)
    lost?.delete(name)
    if (lost?.size === 0) this.#lost.delete(user)
    this.#change({ remove: 'lost name', user, name })
  }
}

function keyOf(user: number, name: string): string {
  return `${user} ${name}`
}

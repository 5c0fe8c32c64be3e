/**
 * The connection of the node that leads to the feeder of a node: who leads, and for which tenant it is. A node that has led until
 * now and does not know it yet must not change what is bound there, so a feeder takes no connection of an older lead than the
 * newest that it has seen.
 */
import type { Socket } from 'node:net'
import type { Leader } from './leadership.ts'
import { dialNode, type NodeDialOptions, ownHeader } from './node-stream.ts'

const KIND = /^feeds (\d{1,15}) (\d{1,15}) (.+)$/su
/** From connecting to the end of the handshake of TLS. */
const DIAL_MS = 5_000

/** When a node began to lead, as the log counts it. */
export interface Lead {
  readonly log: number
  readonly epoch: number
}

export interface FeedStream extends Lead {
  readonly tenant: string
}

/** Negative if `one` led before `other`. */
export function compareLeads(one: Lead, other: Lead): number {
  return one.log - other.log || one.epoch - other.epoch
}

/** What the header of such a connection says that it is for. */
export function kindOfFeeds({ log, epoch, tenant }: FeedStream): string {
  return `feeds ${log} ${epoch} ${tenant}`
}

/** Undefined if a connection is for something else. */
export function feedStreamOf(kind: string): FeedStream | undefined {
  const [, log, epoch, tenant] = KIND.exec(kind) ?? []
  return tenant === undefined ? undefined : { log: Number(log), epoch: Number(epoch), tenant }
}

/** Connects to the feeder of a node. Rejects with Error; then nothing is left open. */
export function connectToFeeder(
  to: Leader,
  stream: FeedStream,
  options: NodeDialOptions,
  signal: AbortSignal,
): Promise<Socket> {
  const [socket, connected] = dialNode(to, options)
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS)])
  return new Promise((resolve, reject) => {
    const abort = (): void => void socket.destroy(new Error(`node ${to.name} cannot be reached`))
    const failed = (error?: Error): void => {
      giveUp.removeEventListener('abort', abort)
      socket.destroy()
      reject(error ?? new Error(`node ${to.name} has closed the connection`))
    }
    const closed = (): void => failed()
    giveUp.addEventListener('abort', abort)
    if (giveUp.aborted) abort()
    socket.once('error', failed).once('close', closed)
    socket.once(connected, () => {
      const header = ownHeader(socket, kindOfFeeds(stream))
      if (header === undefined) return failed()
      giveUp.removeEventListener('abort', abort)
      socket.off('error', failed).off('close', closed)
      socket.on('error', () => socket.destroy())
      socket.write(header)
      resolve(socket)
    })
  })
}

/** A TCP listener for streams that come in: smon, where nothing is written but the end of a stream that was taken, and Mono agents, which are asked. */
import { createServer, type Server, type Socket } from 'node:net'
import type { Address } from '../../core/address.ts'
import { bindTcp } from '../../core/listen.ts'
import type { Pacer, StreamTaker } from './pacer.ts'

/** A sender that is gone without a word is noticed by the kernel. */
const KEEP_ALIVE_MS = 15_000

export interface StreamListenOptions {
  readonly address: Address
  /** The key of the configuration, named in the error if the address cannot be bound. */
  readonly key: string
  /** Called for each connection; returns what takes its bytes and what they wait for, undefined to refuse it. */
  readonly open: (
    address: string,
    port: number,
    back: StreamReply,
  ) => { readonly taker: StreamTaker; readonly pacer: Pacer } | undefined
}

/** The way back to the peer that connected. */
export interface StreamReply {
  write(bytes: Uint8Array): void
  /** Ends the connection at once. */
  close(): void
}

export interface StreamListening {
  readonly address: Address
  close(): Promise<void>
}

/** Rejects with ListenError. */
export async function listenStreams({ address, key, open }: StreamListenOptions): Promise<StreamListening> {
  const server: Server = createServer({
    allowHalfOpen: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  })
  const sockets = new Set<Socket>()
  const bound = await bindTcp(server, address, key)
  server.on('connection', (socket: Socket) => {
    const back: StreamReply = {
      write(bytes) {
        if (socket.writable) socket.write(bytes)
      },
      close: () => socket.resetAndDestroy(),
    }
    const opened = open(socket.remoteAddress ?? '', socket.remotePort ?? 0, back)
    if (opened === undefined) {
      // Not an end: that would say that everything was taken.
      socket.resetAndDestroy()
      return
    }
    const { taker, pacer } = opened
    sockets.add(socket)
    const feed = pacer.feed(
      {
        push: (bytes) => taker.push(bytes),
        end() {
          taker.end()
          // The sender may wait for this: what it sent is taken.
          socket.end()
        },
      },
      socket,
    )
    socket.on('data', (chunk) => feed.push(chunk as Buffer))
    socket.on('end', () => feed.end())
    // What came before a reset counts: the rest is taken.
    socket.on('close', () => {
      sockets.delete(socket)
      feed.end()
    })
    socket.on('error', () => {})
  })
  return {
    address: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.resetAndDestroy()
      }),
  }
}

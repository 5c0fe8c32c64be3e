/** A TCP listener for incoming streams: smon, whose end is confirmed after it was processed, and Mono agents, which are sent requests. */
import { createServer, type Server, type Socket } from 'node:net'
import type { Address } from '../../kernel/core/address.ts'
import { bindTcp } from '../../kernel/core/listen.ts'
import type { Pacer, StreamTaker } from './pacer.ts'

/** The kernel detects a sender that disappeared without closing its connection. */
const KEEP_ALIVE_MS = 15_000

export interface StreamListenOptions {
  readonly address: Address
  /** The key of the configuration, named in the error if the address cannot be bound. */
  readonly key: string
  /** Called for each connection; returns the receiver of its bytes and their pacer, or undefined to refuse it. */
  readonly open: (
    address: string,
    port: number,
    back: StreamReply,
  ) => { readonly taker: StreamTaker; readonly pacer: Pacer } | undefined
  /** Takes what `open` has thrown for a connection from an address: it is reset. */
  readonly failed: (error: unknown, address: string) => void
}

/** The way back to the peer that connected. */
export interface StreamReply {
  write(bytes: Uint8Array): void
  /** Resets the connection immediately. */
  close(): void
}

export interface StreamListening {
  readonly address: Address
  /** Resets the connections from addresses that may send no more. What they have sent is still processed. */
  review(maySend: (address: string) => boolean): void
  close(): Promise<void>
}

/** Rejects with ListenError. */
export async function listenStreams({ address, key, open, failed }: StreamListenOptions): Promise<StreamListening> {
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
    const from = socket.remoteAddress ?? ''
    let opened: ReturnType<StreamListenOptions['open']>
    try {
      opened = open(from, socket.remotePort ?? 0, back)
    } catch (error) {
      failed(error, from)
    }
    if (opened === undefined) {
      // A reset instead of an end, which would confirm that everything was processed.
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
          // The sender may wait for this confirmation that everything was processed.
          socket.end()
        },
      },
      { pause: () => socket.pause(), resume: () => socket.resume(), destroy: () => socket.resetAndDestroy() },
    )
    socket.on('data', (chunk) => feed.push(chunk as Buffer))
    socket.on('end', () => feed.end())
    // Data that came before a reset is still processed.
    socket.on('close', () => {
      sockets.delete(socket)
      feed.end()
    })
    socket.on('error', () => {})
  })
  return {
    address: bound,
    review(maySend) {
      for (const socket of sockets) if (!maySend(socket.remoteAddress ?? '')) socket.resetAndDestroy()
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.resetAndDestroy()
      }),
  }
}

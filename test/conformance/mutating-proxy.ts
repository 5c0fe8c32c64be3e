/** Wrong servers: proxies before a right one, through which every message of the producer goes, to be changed. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Duplex, Transform } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, TLSSocket, type TLSSocketOptions } from 'node:tls'
import { constants, createDeflateRaw, createInflateRaw } from 'node:zlib'
import { WebSocket, WebSocketServer } from 'ws'

/** What is sent instead of a frame (with its length); one per connection, so that it can count. */
export type Mutation = () => (frame: Buffer) => readonly Buffer[]

/** What is wrong beside the messages. */
export interface Wrongs {
  /** What the producer gets instead of a command. */
  readonly command?: (frame: Buffer) => Buffer
  /** An end of the producer is not passed on. */
  readonly keepsOpen?: boolean
  /** The layer `tls` on both sides: nothing is said in it if it is left out. */
  readonly tls?: { readonly server: TLSSocketOptions; readonly client: ConnectionOptions }
  /** Instead of raw deflate with a flush after each write; `undefined`: nothing. */
  readonly deflate?: () => Transform | undefined
}

export interface MutatingProxy {
  readonly address: string
  readonly port: number
  close(): Promise<void>
}

const WRAP = 13
const RESPONSE = 0xffffffff
const LONGEST = 2 << 20
const Z_SYNC_FLUSH = constants.Z_SYNC_FLUSH
const rightDeflate = (): Transform => createDeflateRaw({ flush: Z_SYNC_FLUSH })

/** A proxy before the address of a producer. */
export function startMutatingProxy(target: string, mutation: Mutation, wrongs: Wrongs = {}): Promise<MutatingProxy> {
  const { hostname, port } = new URL(target)
  return listen((near) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true })
    relay(near, far, mutation, wrongs)
    return far
  })
}

/** A proxy before a consumer that is called. `consumer`: its port, known when the call comes; undefined: it is not passed on. */
export function startMutatingCall(
  consumer: () => number | undefined,
  mutation: Mutation,
  wrongs: Wrongs = {},
): Promise<MutatingProxy> {
  return listen((far) => {
    const port = consumer()
    if (port === undefined) return far.destroy()
    const near = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
    relay(near, far, mutation, wrongs)
    return near
  })
}

async function listen(accept: (socket: Socket) => Socket): Promise<MutatingProxy> {
  const open = new Set<Socket>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    for (const one of [socket, accept(socket)]) open.add(one.once('close', () => open.delete(one)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    address: `tcp://127.0.0.1:${port}`,
    port,
    close() {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** `near` is the consumer's side, `far` the producer's. */
export function relay(near: Duplex, far: Duplex, mutation: Mutation, wrongs: Wrongs): void {
  const mutate = mutation()
  let wrap: { readonly seq: number; readonly layer: string } | undefined
  const consumer = new Side(near, (frame) => {
    if (frame.length >= 16 && frame.readUInt32BE(4) === WRAP) {
      const layer = frame.toString('latin1', 16, 16 + frame.readUInt32BE(12))
      wrap = { seq: frame.readUInt32BE(8), layer }
    }
    producer.write(wrongs.command?.(frame) ?? frame)
  })
  const producer = new Side(far, (frame) => {
    const isWrapped = frame.readUInt32BE(4) === RESPONSE && frame.readUInt32BE(8) === wrap?.seq
    const isDone = isWrapped && frame.readUInt32BE(12) === 0
    for (const changed of mutate(frame)) consumer.write(changed)
    if (!isDone) return
    if (wrap?.layer === 'deflate') {
      consumer.deflate(wrongs.deflate ?? rightDeflate)
      producer.deflate(rightDeflate)
    } else if (wrongs.tls !== undefined) {
      consumer.carry(new TLSSocket(near, { ...wrongs.tls.server, isServer: true }))
      producer.carry(connectTls({ ...wrongs.tls.client, socket: far }))
    }
    wrap = undefined
  })
  near.on('end', () => far.end())
  far.on('end', () => wrongs.keepsOpen || near.end())
  near.on('close', () => far.destroy())
  for (const socket of [near, far]) socket.on('error', () => socket.destroy())
}

/** One side's stream of frames, with its layers. */
class Side {
  readonly #take: (frame: Buffer) => void
  #stream!: Duplex
  #rest = Buffer.alloc(0)
  #layer: { readonly deflate: Transform | undefined; readonly inflate: Transform } | undefined

  constructor(stream: Duplex, take: (frame: Buffer) => void) {
    this.#take = take
    this.carry(stream)
  }

  carry(stream: Duplex): void {
    this.#stream?.removeAllListeners('data')
    this.#stream = stream
    stream.on('data', (chunk: Buffer) => {
      if (this.#layer === undefined) this.#frames(chunk)
      else this.#layer.inflate.write(chunk)
    })
    stream.on('error', () => stream.destroy())
  }

  deflate(make: () => Transform | undefined): void {
    const deflate = make()
    const inflate = createInflateRaw({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })
    deflate?.on('data', (bytes: Buffer) => this.#stream.write(bytes))
    inflate.on('data', (bytes: Buffer) => this.#frames(bytes))
    // What is no deflate data is swallowed.
    inflate.on('error', () => {})
    this.#layer = { deflate, inflate }
    inflate.write(this.#rest)
    this.#rest = Buffer.alloc(0)
  }

  write(bytes: Buffer): void {
    if (this.#layer?.deflate === undefined) this.#stream.write(bytes)
    else this.#layer.deflate.write(bytes)
  }

  /** What cannot be a frame is passed on as it is. */
  #frames(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readUInt32BE(0)
      if (end < 12 || end > LONGEST) {
        this.#take(this.#rest)
        this.#rest = Buffer.alloc(0)
        return
      }
      if (this.#rest.length < end) return
      const frame = Buffer.from(this.#rest.subarray(0, end))
      this.#rest = this.#rest.subarray(end)
      this.#take(frame)
    }
  }
}

/** The same before `monitoring.json`: what is sent instead of a text, and the close code instead of another. */
export async function startMutatingJson(
  target: string,
  mutate: (text: string) => string,
  code: (code: number) => number = (same) => same,
): Promise<Omit<MutatingProxy, 'port'>> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (near) => {
    const far = new WebSocket(target, ['monitoring.json'])
    const opened = once(far, 'open')
    far.on('message', (data: Buffer) => near.send(mutate(data.toString('utf8'))))
    far.on('close', (came) => near.close(code(came)))
    near.on('message', (data: Buffer) => void opened.then(() => far.send(data.toString('utf8'))))
    near.on('close', () => far.terminate())
    for (const socket of [near, far]) socket.on('error', () => socket.terminate())
  })
  await once(server, 'listening')
  return {
    address: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/monitor`,
    close() {
      for (const client of server.clients) client.terminate()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

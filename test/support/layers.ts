/**
 * The consumer's end of WRAP [MON 12], apart from our own: Node's TLS client, and raw deflate with a flush after every
 * write. The response is read byte by byte, so that nothing after it is taken for the old layer.
 */
import { Duplex, duplexPair } from 'node:stream'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { constants, createDeflateRaw, createInflateRaw } from 'node:zlib'
import { StreamLink } from '../../protocol/link/stream.ts'
import { tlsUpgradable } from '../../server/edge/tcp.ts'
import type { TlsFiles } from '../../server/edge/tls/files.ts'
import { command, type, u32 } from './bytes.ts'
import type { TestProducer } from './producer.ts'
import { RawPeer } from './raw-peer.ts'

const RESPONSE_BYTES = 20

/** Sends WRAP and reads its response, which has to be the right one. Gives the stream, where the layer begins. */
export async function wrapped(peer: RawPeer, layer: string, seq = 0xffff0000): Promise<Duplex> {
  const { stream } = peer
  for (const event of ['data', 'end', 'close']) stream.removeAllListeners(event)
  const response = taken(stream, RESPONSE_BYTES)
  stream.write(command.wrap(seq, layer))
  const expected = Buffer.concat([u32(16), u32(0xffffffff), u32(seq), u32(0), u32(0xfffffffe)])
  const found = await response
  if (!found.equals(expected)) throw new Error(`WRAP was answered with ${found.toString('hex')}`)
  return stream
}

/** The next bytes of a stream, and not one more. */
function taken(stream: Duplex, count: number): Promise<Buffer> {
  let all = Buffer.alloc(0)
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error(`the connection ended after ${all.length} bytes`))
    const take = (chunk: Buffer): void => {
      all = Buffer.concat([all, chunk])
      if (all.length < count) return
      stream.pause()
      stream.off('data', take).off('end', ended).off('close', ended)
      if (all.length > count) stream.unshift(all.subarray(count))
      resolve(all.subarray(0, count))
    }
    stream.on('data', take).on('end', ended).on('close', ended)
    stream.resume()
  })
}

/** Rejects where the handshake does not succeed. */
export function secure(stream: Duplex, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ socket: stream, servername: 'localhost', ...options })
    socket.once('secureConnect', () => resolve(socket)).once('error', reject)
    socket.once('close', () => reject(new Error('the connection ended during the handshake')))
  })
}

/**
 * A stream whose bytes are deflated on their way over `under`, each write to its end. A write is done when `under` has taken
 * the deflated bytes, so a peer that does not read is noticed by whoever writes.
 */
export function deflated(under: Duplex): Duplex {
  const deflate = createDeflateRaw({ flush: constants.Z_SYNC_FLUSH })
  const inflate = createInflateRaw({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH })
  let batch: Buffer[] = []
  const passOn = (done: () => void): void => {
    under.write(Buffer.concat(batch), () => done())
    batch = []
  }
  deflate.on('data', (bytes: Buffer) => batch.push(bytes))
  under.on('data', (bytes: Buffer) => inflate.write(bytes))
  under.on('end', () => inflate.end())
  const upper = new Duplex({
    read: () => void inflate.resume(),
    write: (bytes: Buffer, _encoding, done) => void deflate.write(bytes, () => passOn(done)),
    final: (done) => void deflate.once('end', () => passOn(() => under.end(done))).end(),
    destroy(error, done) {
      under.destroy()
      done(error)
    },
  })
  inflate.on('data', (bytes: Buffer) => {
    if (!upper.push(bytes)) inflate.pause()
  })
  inflate.on('end', () => upper.push(null))
  inflate.on('error', (error) => upper.destroy(error))
  // What arrived before is read to its end, however long that takes the thread that inflates it.
  under.on('close', () => {
    if (inflate.closed) upper.destroy()
    else inflate.once('close', () => upper.destroy()).end()
  })
  under.resume()
  return upper
}

export async function wrapTls(
  peer: RawPeer,
  options: ConnectionOptions,
): Promise<{ peer: RawPeer; socket: TLSSocket }> {
  const socket = await secure(await wrapped(peer, 'tls'), options)
  return { peer: new RawPeer(socket), socket }
}

export async function wrapDeflate(peer: RawPeer): Promise<RawPeer> {
  return new RawPeer(deflated(await wrapped(peer, 'deflate')))
}

/** A connection over a pair of streams whose producer's end can be put under TLS. */
export function connectSecurable(producer: TestProducer, tls: TlsFiles, atOnce = false): Duplex {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  far.once('close', () => near.destroy())
  const link = new StreamLink(far)
  const peer = { address: '192.0.2.7', loopback: false, encrypted: false }
  producer.server.sessions.accept({
    link,
    transport: atOnce ? 'tls' : 'tcp',
    format: 'xdr',
    peer,
    tls: tlsUpgradable(link, tls, atOnce),
  })
  return near
}

/** What a PRODUCER_CAPS offers: `auth ...` and `layer ...`, in its order. */
export function offeredIn({ bytes }: { readonly bytes: Buffer }): string[] {
  const offered: string[] = []
  let at = 16
  const text = (): string => {
    const length = bytes.readUInt32BE(at)
    const found = bytes.toString('utf8', at + 4, at + 4 + length)
    at += 4 + length + (-length & 3)
    return found
  }
  for (let left = bytes.readUInt32BE(12); left > 0; left--) {
    const name = text()
    const isText = bytes.readUInt32BE(at) === type.string
    at += 4
    if (isText) {
      const value = text()
      if (name === 'auth' || name === 'layer') offered.push(`${name} ${value}`)
    } else {
      at += 4
    }
  }
  return offered
}

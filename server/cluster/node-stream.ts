/**
 * What nodes say to each other when one connects to another: a header of the PROXY protocol with the consumer's address, and
 * in a TLV what the stream is for. Nothing of the consumer's own bytes is looked at.
 */
import type { Socket } from 'node:net'
import { encodeProxyHeader, type ProxyHeader } from '../../protocol/proxy/header.ts'

/** A type that the specification leaves to applications. Its value is the name of a kind of stream, in ASCII. */
const KIND_TYPE = 0xe0
const MAX_KIND_BYTES = 32
/** Asks for an answer, by a field without content. */
const ANSWER_TYPE = 0xe1
/**
 * The answer: one byte, before all others, once the stream is taken. A node that does not take it closes it instead, and then it
 * can be passed on again, since nothing of it has been read.
 */
export const TAKEN = 0x06

/** The header of a consumer's connection that is passed on; undefined if it has ended already. */
export function passingHeader(consumer: Socket, kind: string): Uint8Array | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = consumer
  if (remoteAddress === undefined || localAddress === undefined) return undefined
  return encodeProxyHeader({
    route: {
      from: { address: withoutZone(remoteAddress), port: remotePort ?? 0 },
      to: { address: withoutZone(localAddress), port: localPort ?? 0 },
    },
    tlvs: [
      { type: KIND_TYPE, value: Buffer.from(kind, 'latin1') },
      { type: ANSWER_TYPE, value: new Uint8Array(0) },
    ],
  })
}

/** What the stream is for; undefined if the header does not say so, or says it more than once. */
export function kindOf({ tlvs }: ProxyHeader): string | undefined {
  const [kind, ...more] = tlvs.filter(({ type }) => type === KIND_TYPE)
  if (kind === undefined || more.length > 0 || kind.value.length > MAX_KIND_BYTES) return undefined
  return Buffer.from(kind.value).toString('latin1')
}

/** Whether the other end waits for TAKEN. */
export function asksForAnswer({ tlvs }: ProxyHeader): boolean {
  return tlvs.some(({ type }) => type === ANSWER_TYPE)
}

/** The interface of a link-local address means nothing on another machine. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/s, '')
}

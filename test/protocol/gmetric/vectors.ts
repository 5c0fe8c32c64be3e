/** The packets of test/vectors/gmetric, with the one thing JSON cannot hold, bytes, put back. */
import { readFileSync } from 'node:fs'
import type { GmetricPacket } from '../../../protocol/gmetric/packet.ts'

export interface Vector {
  readonly name: string
  readonly bytes: Uint8Array
  readonly packet: GmetricPacket
  /** Bytes at the end of `bytes` that no decoder looks at. */
  readonly ignored: number
}

export const captured = read('captured')
export const derived = read('derived')
export const vectors: readonly Vector[] = [...captured, ...derived]

export function vector(name: string): Vector {
  const found = vectors.find((each) => each.name === name)
  if (!found) throw new Error(`no vector is called ${name}`)
  return found
}

function read(file: string): Vector[] {
  const url = new URL(`../../vectors/gmetric/${file}.json`, import.meta.url)
  const entries: unknown = JSON.parse(readFileSync(url, 'utf8'), (_key, value) =>
    typeof value?.bytes === 'string' ? new Uint8Array(Buffer.from(value.bytes, 'hex')) : value,
  )
  return (entries as { name: string; hex: string; packet: GmetricPacket; ignored?: number }[]).map(
    ({ name, hex, packet, ignored = 0 }) => ({ name, packet, ignored, bytes: new Uint8Array(Buffer.from(hex, 'hex')) }),
  )
}

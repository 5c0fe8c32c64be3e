/**
 * A bomb under the layer `deflate` [MON 12] costs the server no memory. The server is a process of its own, whose highest use of
 * memory the kernel keeps: nothing depends on when it is looked at, or on what else runs in this process.
 */
import { readFileSync } from 'node:fs'
import { constants, deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { command } from '../support/bytes.ts'
import { deflated, wrapped } from '../support/layers.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { ServerProcess } from '../support/server-process.ts'

const MEBIBYTE = 1 << 20
/** What the bomb would inflate to; its first 64 KiB, which a socket may give at once, to 64 of them. */
const BOMB_MEBIBYTES = 1024
/** Two are usual; 65 were seen where all that had arrived at once was inflated at once. */
const MOST_MEBIBYTES = 32

let server: ServerProcess
beforeAll(async () => {
  server = new ServerProcess()
  await server.start()
})
afterAll(() => server.remove())

/** The most memory that the server has had at once. */
function peakMebibytes(): number {
  const [, kibibytes] = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}

it('ends its connection, and the server stays as small as it was', async () => {
  const { peer } = await server.login()
  const { peer: other } = await server.login()
  const under = await wrapped(peer, 'deflate')
  const wrappedPeer = new RawPeer(deflated(under))
  const before = peakMebibytes()
  // A part ends with a full flush, so that the same part may follow.
  const nop = command.nop(1)
  const nops = Buffer.alloc(Math.ceil(MEBIBYTE / nop.length) * nop.length, nop)
  const part = deflateRawSync(nops, { finishFlush: constants.Z_FULL_FLUSH })
  under.write(Buffer.alloc(part.length * BOMB_MEBIBYTES, part))
  // The end overtakes the notice where the peer has sent more than was read; test/server/rules/section-12.test.ts reads it.
  while ((await wrappedPeer.next()).kind !== 'closed');
  other.send(command.nop(1))
  expect(await other.response(1)).toMatchObject({ status: 0 })
  expect(peakMebibytes() - before).toBeLessThan(MOST_MEBIBYTES)
})

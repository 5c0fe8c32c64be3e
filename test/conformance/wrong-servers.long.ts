/** The scripts of controls, logins, layers and calls can fail: servers that are wrong in one thing each. */
import { createDeflate, createDeflateRaw } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { str } from '../support/bytes.ts'
import { Authority, type Issued } from '../support/certificates.ts'
import { type Mutation, startMutatingCall, startMutatingProxy, type Wrongs } from './mutating-proxy.ts'
import {
  always,
  answering,
  isCapabilities,
  isResponse,
  isValue,
  offering,
  put,
  resized,
  saying,
  withoutSecondCapabilities,
} from './mutations.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'
import { describeOutcome } from './report.ts'
import { readScripts, type Script } from './script.ts'
import { type Outcome, Run, type TargetOptions } from './target.ts'

const MINUTES = 60_000
/** How long what is never going to come is waited for. */
const IMPATIENT_MS = 5_000
const OK = 0
const NEEDED = 1
const FAILED = 2
const INVALID = 6
const DENIED = 11

const scripts = readScripts(new URL('scripts/', import.meta.url))
const right = always((frame) => frame)
let server: OwnServer
/** Of somebody whom the kit does not know. */
let stranger: Issued
beforeAll(async () => {
  server = await startOwnServer()
  stranger = await (await Authority.make('a stranger')).server()
})
afterAll(() => server.stop())

/** What is wrong, the script that has to notice, and words of the step or its failure. */
interface Wrong extends Omit<Wrongs, 'tls'> {
  readonly is: string
  readonly mutation?: Mutation
  readonly script: string
  readonly says: string
  /** Waits for what does not come. */
  readonly isSilent?: boolean
}

async function play(script: string, address: string, options: TargetOptions): Promise<Outcome> {
  const found = scripts.find(({ name }) => name === script) as Script
  return (await Run.begin(address, 'tcp', options)).play({ ...found, needs: [] })
}

function expectNoticed(outcome: Outcome, says: string): void {
  expect(outcome.result, describeOutcome(outcome)).toBe('failed')
  expect(describeOutcome(outcome)).toContain(says)
}

/** The proxy ends TLS on both sides, with the client's certificate. */
function tlsOf({ certificate, ca }: TargetOptions, issued: Issued = server.issued): NonNullable<Wrongs['tls']> {
  return { server: { ...issued }, client: { ...certificate, ca, host: '127.0.0.1' } }
}

let users = 0
async function optionsFor({ isSilent = false }: Pick<Wrong, 'isSilent'>): Promise<TargetOptions> {
  const options = await server.certified(`wrong${++users}`)
  return isSilent ? { ...options, patienceMs: IMPATIENT_MS } : options
}

/** Keys that are never the same. */
function withoutKeys(): (frame: Buffer) => Buffer {
  let commands = 0
  return (frame) => {
    const at = frame.indexOf('idempotency_key')
    // After the name with its padding come the type and the length.
    if (at >= 0) frame.write(String(++commands % 10), at + 24)
    return frame
  }
}

/** PRODUCER_CAPS may come at any time. */
function introducing(): (frame: Buffer) => Buffer[] {
  let capabilities: Buffer | undefined
  return (frame) => {
    if (isCapabilities(frame)) capabilities = Buffer.from(frame)
    return capabilities !== undefined && isValue(frame) ? [capabilities, frame] : [frame]
  }
}

const wrongs: readonly Wrong[] = [
  { is: 'nothing, in the clear', script: '10/dry-run-does-nothing', says: '' },
  { is: 'nothing, with layers', script: '12/tls-and-deflate', says: '' },
  { is: 'nothing, and says who it is before each value', mutation: introducing, script: '8/08-ledger', says: '' },
  {
    is: 'a dry run that runs',
    command: (frame) => {
      const at = frame.indexOf('dry_run')
      return at < 0 ? frame : put(frame, at + 12, 0)
    },
    script: '10/dry-run-does-nothing',
    says: '"dry-run"',
  },
  {
    is: 'another outcome of a dry run',
    mutation: saying('dry-run', 'dry run'),
    script: '10/dry-run-does-nothing',
    says: '"dry-run"',
  },
  {
    is: 'a dry run that is not judged',
    mutation: answering(9, OK),
    script: '10/dry-run-is-judged',
    says: 'NO_SUCH_CHANNEL',
  },
  { is: 'keys that are not kept', command: withoutKeys(), script: '10/key-runs-once', says: 'RESPONSE 00000003 OK' },
  {
    is: 'the old result id for a repetition',
    mutation: () => {
      let first: number | undefined
      return (frame) => {
        if (!isResponse(frame) || frame.readUInt32BE(12) !== OK) return [frame]
        const [seq, result] = [frame.readUInt32BE(8), frame.readUInt32BE(16)]
        if (seq === 2) first = result
        return [seq === 3 && first !== undefined ? put(frame, 16, first) : frame]
      }
    },
    script: '10/key-runs-once',
    says: 'the same as {r1}',
  },
  {
    is: 'a key for other arguments',
    mutation: answering(INVALID, OK, 3),
    script: '10/key-with-other-arguments',
    says: 'RESPONSE 00000003 INVALID_ARGUMENT',
  },
  {
    is: 'a key of any length',
    mutation: answering(INVALID, OK, 3),
    script: '10/key-malformed',
    says: 'RESPONSE 00000003 INVALID',
  },
  {
    is: 'a key that a refusal used up',
    mutation: always((frame) => (isResponse(frame) && frame.readUInt32BE(8) === 2 ? put(frame, 12, INVALID) : frame)),
    script: '10/key-of-a-refused-one',
    says: 'RESPONSE 00000002 OK',
  },
  {
    is: 'an audit log from its beginning',
    command: (frame) => {
      const at = frame.indexOf('after')
      if (at >= 0) frame.writeBigUInt64BE(0n, at + 12)
      return frame
    },
    script: '10/audit-after',
    says: 'C< LEN {b}',
  },
  {
    is: 'another word in the audit log',
    mutation: saying('refused', 'denied!'),
    isSilent: true,
    script: '10/audit-record',
    says: 'refused',
  },
  {
    is: 'audit records without a hash',
    mutation: saying('hash', 'hush'),
    script: '10/audit-record',
    says: '"hash" OPAQUE',
  },
  {
    is: 'audit records that need no COMMIT',
    mutation: always((frame) => {
      if (isValue(frame)) frame.writeBigUInt64BE(0n, 8)
      return frame
    }),
    script: '10/audit-record',
    says: '"refused"',
  },
  { is: 'any token', mutation: answering(FAILED, OK), script: '11/token-wrong', says: 'RESPONSE 00000001 AUTH_FAILED' },
  { is: 'guesses at tokens without end', keepsOpen: true, isSilent: true, script: '11/token-wrong', says: 'closed A' },
  {
    is: 'a certificate offered to everybody',
    mutation: offering('auth', 'certificate'),
    script: '11/certificate-in-the-clear',
    says: 'offers A no auth certificate',
  },
  {
    is: 'scram-sha-256-plus in the clear',
    mutation: offering('auth', 'scram-sha-256-plus'),
    script: '11/certificate-in-the-clear',
    says: 'offers A no auth scram-sha-256-plus',
  },
  {
    is: 'a certificate with data',
    mutation: answering(INVALID, OK),
    script: '11/certificate-takes-no-data',
    says: 'RESPONSE 00000001 INVALID_ARGUMENT',
  },
  { is: 'somebody between the two ends of TLS', script: '11/plus', says: 'login A by scram-sha-256-plus' },
  {
    is: 'a proof that is bound to nothing',
    mutation: answering(FAILED, NEEDED),
    script: '11/plus-bound-elsewhere',
    says: 'RESPONSE ffffffef AUTH_FAILED',
  },
  {
    is: 'another binding',
    mutation: answering(FAILED, NEEDED),
    script: '11/plus-by-another-binding',
    says: 'RESPONSE 00000001 AUTH_FAILED',
  },
  {
    is: 'a producer that proves nothing',
    mutation: always((frame) => {
      const at = frame.indexOf('v=')
      return at === 12 ? put(frame, 16, 0x41414141) : frame
    }),
    script: '11/scram',
    says: 'LEN AUTH {scram-verifier}',
  },
  {
    is: 'a WRAP whose result is 0',
    mutation: always((frame) =>
      isResponse(frame) && frame.readUInt32BE(16) === 0xfffffffe ? put(frame, 16, 0) : frame,
    ),
    script: '12/tls',
    says: 'OK fffffffe',
  },
  {
    is: 'no capabilities after the handshake',
    mutation: withoutSecondCapabilities(),
    script: '12/tls',
    says: 'PRODUCER_CAPS',
  },
  { is: 'tls twice', mutation: offering('layer', 'tls', 2), script: '12/tls', says: 'offers A no layer tls' },
  { is: 'scram-sha-256-plus over TLS 1.2', script: '12/tls-1.2', says: 'offers A no auth scram-sha-256-plus' },
  {
    is: 'messages in the clear before the handshake',
    mutation: always((frame) => (isResponse(frame) && frame.readUInt32BE(8) === 0xfffffff1 ? [frame, frame] : [frame])),
    script: '12/tls',
    says: 'no TLS: ',
  },
  {
    is: 'an exchange that goes on under TLS',
    mutation: answering(INVALID, FAILED),
    script: '12/tls-ends-an-exchange',
    says: 'RESPONSE 00000002 INVALID_ARGUMENT',
  },
  { is: 'bytes after a WRAP', keepsOpen: true, isSilent: true, script: '12/tls-bytes-after-wrap', says: 'closed A' },
  {
    is: 'deflate before AUTH',
    mutation: offering('layer', 'deflate'),
    script: '12/deflate-before-auth',
    says: 'offers A no',
  },
  {
    is: 'deflate twice',
    mutation: offering('layer', 'deflate', 3),
    script: '12/deflate',
    says: 'offers A no layer deflate',
  },
  {
    is: 'zlib instead of raw deflate',
    deflate: () => createDeflate(),
    isSilent: true,
    script: '12/deflate',
    says: 'PRODUCER_CAPS',
  },
  {
    is: 'deflate that is not flushed',
    deflate: () => createDeflateRaw(),
    isSilent: true,
    script: '12/deflate',
    says: 'PRODUCER_CAPS',
  },
  { is: 'deflate that does nothing', deflate: () => undefined, script: '12/deflate', says: 'PRODUCER_CAPS' },
  { is: 'what is no deflate data', keepsOpen: true, isSilent: true, script: '12/deflate-no-deflate', says: 'closed A' },
  { is: 'bombs', keepsOpen: true, isSilent: true, script: '12/deflate-bomb', says: 'closed A' },
  {
    is: 'secrets of channels that are passwords',
    mutation: answering(FAILED, NEEDED),
    script: '14/secret-elsewhere',
    says: 'RESPONSE ffffffef AUTH_FAILED',
  },
  {
    is: 'short secrets',
    mutation: answering(INVALID, OK, 1),
    script: '14/secret-length',
    says: 'RESPONSE 00000001 INVALID',
  },
  { is: 'any url', mutation: answering(INVALID, DENIED), script: '14/urls-malformed', says: 'INVALID_ARGUMENT' },
  {
    is: 'refused destinations that are told apart',
    mutation: always((frame) => {
      const isSecond = isResponse(frame) && frame.readUInt32BE(8) === 2 && frame.readUInt32BE(12) === DENIED
      return isSecond ? put(frame, 24, 0x61616161) : frame
    }),
    script: '14/not-allowed',
    says: '{d}',
  },
]

describe('the kit notices', () => {
  it.concurrent.for(wrongs)('$is: $script', { timeout: MINUTES }, async (wrong) => {
    const { mutation = right, script, says } = wrong
    const options = await optionsFor(wrong)
    const proxy = await startMutatingProxy(server.tcp, mutation, { ...wrong, tls: tlsOf(options) })
    const outcome = await play(script, proxy.address, options)
    await proxy.close()
    if (says === '') expect(outcome.result, describeOutcome(outcome)).toBe('ok')
    else expectNoticed(outcome, says)
  })

  it.concurrent.each<[string, (options: TargetOptions) => NonNullable<Wrongs['tls']>, string, string]>([
    ['a certificate that nobody vouches for', (options) => tlsOf(options, stranger), '12/tls', 'no TLS: '],
    [
      'TLS 1.1',
      (options) => {
        const { server: own, client } = tlsOf(options)
        return { server: { ...own, minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0' } as object, client }
      },
      '12/tls-1.1',
      'the handshake succeeded',
    ],
  ])('%s', { timeout: MINUTES }, async (_, tls, script, says) => {
    const options = await optionsFor({})
    const proxy = await startMutatingProxy(server.tcp, right, { tls: tls(options) })
    const outcome = await play(script, proxy.address, options)
    await proxy.close()
    expectNoticed(outcome, says)
  })
})

/** The same on connections that the producer makes. `calls`: how many of them reach the kit. */
const wrongCalls: readonly (Wrong & { readonly calls?: number })[] = [
  { is: 'nothing', script: '14/call', says: '' },
  { is: 'passwords', mutation: offering('auth', 'password'), script: '14/methods', says: 'offers A no auth password' },
  {
    is: 'the password of the owner',
    mutation: answering(FAILED, NEEDED),
    script: '14/not-by-the-password',
    says: 'RESPONSE ffffffef AUTH_FAILED',
  },
  {
    is: 'another channel',
    mutation: always((frame) => {
      const isLogin = isResponse(frame) && frame.readUInt32BE(8) === 0xfffffff0
      return isLogin ? put(frame, 16, frame.readUInt32BE(16) ^ 1) : frame
    }),
    script: '14/call',
    says: 'OK {D}',
  },
  { is: 'no capabilities after AUTH', mutation: withoutSecondCapabilities(), script: '14/call', says: 'PRODUCER_CAPS' },
  {
    is: 'EXECUTE by those who are called',
    mutation: answering(DENIED, OK, 4),
    script: '14/denied',
    says: 'RESPONSE 00000004 PERM',
  },
  {
    is: 'commands before AUTH',
    mutation: answering(3, OK),
    script: '14/not-authenticated',
    says: 'NOT_AUTHENTICATED',
  },
  {
    is: 'values of another channel',
    mutation: always((frame) => (isValue(frame) ? put(frame, 4, frame.readUInt32BE(4) ^ 1) : frame)),
    script: '14/values',
    says: 'A< LEN {m}',
  },
  { is: 'one call only', calls: 1, isSilent: true, script: '14/calls-again-after-no-login', says: 'does not connect' },
  { is: 'no call', calls: 0, isSilent: true, script: '14/call', says: 'does not connect' },
  {
    is: 'two connections of one channel',
    keepsOpen: true,
    isSilent: true,
    script: '14/taken-from-elsewhere',
    says: 'closed A',
  },
  { is: 'a channel that outlives its end', keepsOpen: true, isSilent: true, script: '14/deleted', says: 'closed A' },
]

describe('the kit, called, notices', () => {
  it.concurrent.for(wrongCalls)('$is: $script', { timeout: MINUTES }, async (wrong) => {
    const { mutation = right, script, says, calls = Number.POSITIVE_INFINITY, keepsOpen = false } = wrong
    const options = await optionsFor(wrong)
    let made = 0
    let port: number | undefined
    const call = await startMutatingCall(() => (++made > calls ? undefined : port), mutation, { keepsOpen })
    // The producer is asked to call the proxy instead of the kit.
    const command = (frame: Buffer): Buffer => {
      const at = frame.indexOf('tcp://127.0.0.1:')
      if (at < 0) return frame
      const end = at + frame.readUInt32BE(at - 4)
      port = Number(new URL(frame.toString('latin1', at, end)).port)
      const instead = str(`tcp://127.0.0.1:${call.port}`)
      return resized(Buffer.concat([frame.subarray(0, at - 4), instead, frame.subarray((end + 3) & ~3)]))
    }
    const proxy = await startMutatingProxy(server.tcp, right, { command })
    const outcome = await play(script, proxy.address, options)
    await proxy.close()
    await call.close()
    if (says === '') expect(outcome.result, describeOutcome(outcome)).toBe('ok')
    else expectNoticed(outcome, says)
  })
})

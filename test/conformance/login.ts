/**
 * The step `login`: capabilities, AUTH, capabilities, each message compared like any other. By `scram-sha-256`, which every
 * producer offers, unless the script says `by password`, `by token`, `by certificate` or `by scram-sha-256-plus`. The steps
 * `answer` and `refused` are logins on connections that are there already.
 */
import { type Part, parsePattern } from './pattern.ts'
import { clientFinal, clientFirst } from './scram.ts'
import type { Expectation } from './script.ts'
import type { Stage } from './stage.ts'
import { expectedWords, sentWords } from './words.ts'
import { inside, opaque } from './xdr.ts'

export const loginMethods = ['scram-sha-256', 'password', 'token', 'certificate', 'scram-sha-256-plus'] as const
export type LoginMethod = (typeof loginMethods)[number]

export interface Login {
  readonly peer: string
  readonly as: 'user' | 'other'
  readonly by: LoginMethod
}

/** Who proves what in an exchange of SCRAM. */
interface Proof {
  readonly peer: string
  readonly identity: string
  readonly secret: string
  /** Binds it to a connection: method `scram-sha-256-plus`. */
  readonly exporter?: Buffer | undefined
}

const CAPS = 'LEN PRODUCER_CAPS 00000001 {_:u32} {_:arglist}'

/** The channel's id is kept under the name of the connection. Throws Failure. */
export async function logIn(stage: Stage, login: Login): Promise<void> {
  const { peer, by } = login
  await stage.connect(peer, { certificate: by === 'certificate' })
  await expect(stage, peer, CAPS)
  if (!stage.isOffered(peer, `auth ${by}`) && stage.isOffered(peer, 'layer tls')) {
    await stage.wrap({ peer, layer: 'tls', certificate: by === 'certificate' })
    await expect(stage, peer, CAPS)
  }
  await authenticate(stage, login)
  await expect(stage, peer, `LEN RESPONSE fffffff0 OK {${peer === '_' ? '_' : peer}:channel}`)
  await expect(stage, peer, CAPS)
}

/** As far as the last AUTH. */
async function authenticate(stage: Stage, { peer, as, by }: Login): Promise<void> {
  switch (by) {
    case 'password': {
      const names = as === 'user' ? '{user} {secret}' : '{other} {other-secret}'
      return send(stage, peer, `LEN AUTH fffffff0 "password" [ ${names} ]`)
    }
    case 'token':
      return send(stage, peer, 'LEN AUTH fffffff0 "token" {token}')
    case 'certificate':
      return send(stage, peer, 'LEN AUTH fffffff0 "certificate" [ ]')
    default: {
      const credentials = as === 'user' ? stage.target.user : stage.target.other
      if (credentials === undefined) throw new Error('there is no second user: --other NAME --other-secret-file FILE')
      const exporter = by === 'scram-sha-256' ? undefined : stage.speaker(peer).exporter()
      await prove(stage, { peer, identity: credentials.user, secret: credentials.secret, exporter })
    }
  }
}

/** The producer has called: SCRAM by the secret of the channel, which has to be the current one then. */
export async function answer(stage: Stage, { peer, channel }: { peer: string; channel: string }): Promise<void> {
  await stage.called(peer)
  await expect(stage, peer, CAPS)
  await prove(stage, { peer, identity: stage.target.user.user, secret: textOf(stage, 'channel-secret') })
  await expect(stage, peer, `LEN RESPONSE fffffff0 OK {${channel}}`)
  await expect(stage, peer, CAPS)
}

/** An exchange whose proof is AUTH_FAILED. */
export async function beRefused(
  stage: Stage,
  { peer, secret, boundTo }: { peer: string; secret: string; boundTo: string | undefined },
): Promise<void> {
  const exporter = boundTo === undefined ? undefined : stage.speaker(boundTo).exporter()
  await challenge(stage, { peer, identity: stage.target.user.user, secret: textOf(stage, secret), exporter })
  await expect(stage, peer, 'LEN RESPONSE ffffffef AUTH_FAILED 00000000 {_:str}')
}

async function prove(stage: Stage, proof: Proof): Promise<void> {
  const { peer } = proof
  await challenge(stage, proof)
  await expect(stage, peer, 'LEN RESPONSE ffffffef AUTH_NEEDED 00000000')
  await expect(stage, peer, 'LEN AUTH {scram-verifier}')
  send(stage, peer, 'LEN AUTH fffffff0 00000000 [ ]')
}

/** SCRAM as far as the client's last message. */
async function challenge(stage: Stage, { peer, identity, secret, exporter }: Proof): Promise<void> {
  const first = clientFirst(identity, exporter)
  keep(stage, 'scram-first', first.data)
  const method = exporter === undefined ? 'scram-sha-256' : 'scram-sha-256-plus'
  send(stage, peer, `LEN AUTH ffffffee "${method}" {scram-first}`)
  await expect(stage, peer, 'LEN RESPONSE ffffffee AUTH_NEEDED 00000000')
  await expect(stage, peer, 'LEN AUTH {scram-server:opaque}')
  const server = textOf(stage, 'scram-server')
  const { data, verifier } = clientFinal(first, server, secret, stage.target.passwords)
  keep(stage, 'scram-final', data)
  keep(stage, 'scram-verifier', Buffer.from(verifier))
  send(stage, peer, 'LEN AUTH ffffffef 00000000 {scram-final}')
}

function textOf(stage: Stage, name: string): string {
  const variable = stage.variables.get(name)
  if (variable === undefined) throw new Error(`{${name}} holds nothing yet`)
  return inside(variable.bytes).toString('latin1')
}

function keep(stage: Stage, name: string, data: Buffer): void {
  stage.variables.set(name, { kind: 'opaque', bytes: opaque(data) })
}

function send(stage: Stage, peer: string, text: string): void {
  stage.send(peer, parsePattern(text, sentWords))
}

function expect(stage: Stage, peer: string, text: string): Promise<void> {
  const parts: readonly Part[] = parsePattern(text, expectedWords)
  const expectation: Expectation = { text, parts }
  return stage.expect(peer, [expectation])
}

/**
 * The step `login`: capabilities, AUTH, capabilities, each message compared like any other. By `scram-sha-256`, which every
 * producer offers, unless the script says `by password`.
 */
import { type Part, parsePattern } from './pattern.ts'
import { clientFinal, clientFirst } from './scram.ts'
import type { Expectation } from './script.ts'
import type { Stage } from './stage.ts'
import { expectedWords, sentWords } from './words.ts'
import { inside, opaque } from './xdr.ts'

export interface Login {
  readonly peer: string
  readonly as: 'user' | 'other'
  readonly by: 'password' | 'scram-sha-256'
}

const CAPS = 'LEN PRODUCER_CAPS 00000001 {_:u32} {_:arglist}'

/** The channel's id is kept under the name of the connection. Throws Failure. */
export async function logIn(stage: Stage, login: Login): Promise<void> {
  const { peer } = login
  await stage.connect(peer)
  await expect(stage, peer, CAPS)
  if (login.by === 'password') {
    const names = login.as === 'user' ? '{user} {secret}' : '{other} {other-secret}'
    send(stage, peer, `LEN AUTH fffffff0 "password" [ ${names} ]`)
  } else {
    await prove(stage, login)
    send(stage, peer, 'LEN AUTH fffffff0 00000000 [ ]')
  }
  await expect(stage, peer, `LEN RESPONSE fffffff0 OK {${peer === '_' ? '_' : peer}:channel}`)
  await expect(stage, peer, CAPS)
}

/** SCRAM as far as the server's last message. */
async function prove(stage: Stage, { peer, as }: Login): Promise<void> {
  const credentials = as === 'user' ? stage.target.user : stage.target.other
  if (credentials === undefined) throw new Error('there is no second user: --other NAME --other-secret-file FILE')
  const { first, bare } = clientFirst(credentials.user)
  keep(stage, 'scram-first', first)
  send(stage, peer, 'LEN AUTH ffffffee "scram-sha-256" {scram-first}')
  await expect(stage, peer, 'LEN RESPONSE ffffffee AUTH_NEEDED 00000000')
  await expect(stage, peer, 'LEN AUTH {scram-server:opaque}')
  const server = inside(stage.variables.get('scram-server')?.bytes as Buffer).toString('latin1')
  const { data, verifier } = clientFinal(bare, server, credentials.secret)
  keep(stage, 'scram-final', data)
  keep(stage, 'scram-verifier', Buffer.from(verifier))
  send(stage, peer, 'LEN AUTH ffffffef 00000000 {scram-final}')
  await expect(stage, peer, 'LEN RESPONSE ffffffef AUTH_NEEDED 00000000')
  await expect(stage, peer, 'LEN AUTH {scram-verifier}')
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

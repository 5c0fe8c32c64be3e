#!/usr/bin/env node
/** The program `cinnabar-mcp`: connects the sessions to the process. Standard output belongs to the protocol, so all notes go to stderr. */
import { createHash } from 'node:crypto'
import { connect } from '../../client/index.ts'
import { CallLimits } from './limits.ts'
import { CommandLineError, type McpOptions, readOptions, USAGE } from './options.ts'
import manifest from './package.json' with { type: 'json' }
import { ProducerLink } from './producer-link.ts'
import { Proposals } from './proposals.ts'
import { McpSession, type TokenState } from './session.ts'
import { Stdio } from './stdio.ts'
import { StreamableHttp } from './streamable-http.ts'

const { version } = manifest
/** How long a command waits for its response, or for a connection. */
const DEADLINE_MS = 15_000

const now = (): number => performance.now()
const log = (text: string): void => void process.stderr.write(`cinnabar-mcp: ${text.replaceAll(/\p{Cc}/gu, ' ')}\n`)

/** The consumer has a channel that ends with it: nothing stays on the server. */
function linkOf(
  { urls, ca }: McpOptions,
  token: string | (() => string),
  ended?: (error: Error) => void,
): ProducerLink {
  const options = { durable: false, deadlineMs: DEADLINE_MS, ...(ca !== undefined && { tls: { ca } }) }
  return new ProducerLink(() => connect(urls, { token }, options), ended)
}

async function serveStdio(options: McpOptions, token: () => string): Promise<void> {
  const state: TokenState = { limits: new CallLimits(options.callsPerMinute, now), proposals: new Proposals() }
  const link = linkOf(options, token, ({ message }) => log(message))
  const { maxAnswerBytes } = options
  const session = new McpSession({ link, state, maxAnswerBytes, version })
  const transport = new Stdio()
  const ended = new Promise<void>((resolve) => {
    session.server.server.onclose = resolve
    process.stdin.once('end', () => void transport.answered().then(resolve))
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await session.server.connect(transport)
  log(`session ${session.name}, over stdio, asks ${options.urls.join(', ')}`)
  // Early, so that its log says what is wrong; each call tries again.
  link.consumer().catch(({ message }: Error) => log(message))
  await ended
  const { calls, refused } = state.limits.counts
  log(`session ${session.name} has ended: ${calls} calls, ${refused} refused`)
  await session.close()
}

async function serveHttp(options: McpOptions, listen: NonNullable<McpOptions['listen']>): Promise<void> {
  const { token: only, maxSessions, maxAnswerBytes, callsPerMinute } = options
  const states = new Map<string, TokenState>()
  const stateOf = (token: string): TokenState => {
    // What was forgotten counts no more: its last call was more than a minute ago.
    for (const [key, { limits }] of states) if (states.size >= 2 * maxSessions && limits.isIdle) states.delete(key)
    const key = createHash('sha256').update(token).digest('hex')
    const state = states.get(key) ?? { limits: new CallLimits(callsPerMinute, now), proposals: new Proposals() }
    states.set(key, state)
    return state
  }
  const open = async (token: string, ended: () => void): Promise<McpSession> => {
    const link = linkOf(options, token, ended)
    await link.consumer()
    return new McpSession({ link, state: stateOf(token), maxAnswerBytes, version })
  }
  const mayBring = (token: string): boolean => only === undefined || isSame(token, only())
  const door = await StreamableHttp.open({ listen, maxSessions, mayBring, open, log, now })
  log(`listens at ${door.url}, asks ${options.urls.join(', ')}`)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await door.close()
}

/** Without telling by the time where they differ. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')
  return digest(one) === digest(other)
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env)
  if (options === 'help' || options === 'version') {
    process.stdout.write(`${options === 'help' ? USAGE : version}\n`)
    return 0
  }
  if (options.listen !== undefined) await serveHttp(options, options.listen)
  else if (options.token !== undefined) await serveStdio(options, options.token)
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  log((error as Error).message)
  process.exitCode = error instanceof CommandLineError ? 2 : 1
}

/** The command line of `cinnabar-mcp`. Secrets come from files or the environment, never from arguments, which others can see. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

export interface ListenAt {
  readonly host: string
  readonly port: number
  /** Files in PEM; undefined: HTTP without TLS, on this machine only. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  /** Names besides that of `host` by which clients may call it. */
  readonly names: readonly string[]
}

export interface McpOptions {
  /** Addresses of one server. */
  readonly urls: readonly string[]
  /** Reads the token again each time, since it may have been renewed; undefined: clients bring their own. */
  readonly token: (() => string) | undefined
  readonly ca: string | undefined
  /** Undefined: stdio. */
  readonly listen: ListenAt | undefined
  readonly callsPerMinute: number
  readonly maxAnswerBytes: number
  readonly maxSessions: number
}

/** The command line cannot be used. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError'
}

const DEFAULT_URL = 'tcp://127.0.0.1:7650'
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/

export const USAGE = `Usage: cinnabar-mcp [options]

Serves metrics, queries, alerts, channels and controls of a Cinnabar server to agents, over the Model Context Protocol: over stdio,
or, with --listen, over HTTP. It may do what the token may do, and nothing else.

  --url <url>              URL of the server; several addresses of it with commas (CINNABAR_URL; default: ${DEFAULT_URL})
  --token-file <file>      file whose first line is a token (CINNABAR_TOKEN); over HTTP the only one that clients may bring
  --ca <file>              authorities for the server's certificate (CINNABAR_CA; default: those of Node)
  --listen <host:port>     serve over HTTP at /mcp; HOST is 127.0.0.1 if it is left out. Clients bring a token of the server as bearer
  --tls-cert <file>        certificate for --listen, with its chain; needed unless HOST is of this machine
  --tls-key <file>         its private key
  --allow-host <name>      another name by which clients may call it, such as that of a proxy; may be repeated
  --calls-per-minute <n>   calls that a token may make in a minute (default: 120)
  --max-answer <bytes>     the longest answer; what is longer is cut, and says so (default: 65536)
  --max-sessions <n>       sessions over HTTP at the same time (default: 64)
  --help, --version`

/** Returns 'help' or 'version' if that was asked for. Throws CommandLineError. */
export function readOptions(argv: readonly string[], env: NodeJS.ProcessEnv): McpOptions | 'help' | 'version' {
  const given = parsed(argv)
  if (given.help) return 'help'
  if (given.version) return 'version'
  const urls = (given.url ?? (env['CINNABAR_URL'] || DEFAULT_URL)).split(',').map((url) => url.trim())
  const listen = given.listen === undefined ? undefined : listenAt(given.listen, given)
  if (listen === undefined && (given['tls-cert'] ?? given['tls-key'] ?? given['allow-host']) !== undefined) {
    throw new CommandLineError('--tls-cert, --tls-key and --allow-host are for --listen')
  }
  const token = tokenOf(given['token-file'], env)
  if (token === undefined && listen === undefined) {
    const advice = "`cinnabar token add USER --scope 'COLLECT *' --out FILE`, run by an admin, makes one"
    throw new CommandLineError(`a token is needed: give --token-file FILE or CINNABAR_TOKEN.\n${advice}`)
  }
  return {
    urls: urls.map((url) => (url.includes('://') ? url : `tcp://${url}`)),
    token,
    ca: given.ca ?? (env['CINNABAR_CA'] || undefined),
    listen,
    callsPerMinute: numberOf(given, 'calls-per-minute', 120, { min: 1, max: 100_000 }),
    maxAnswerBytes: numberOf(given, 'max-answer', 65_536, { min: 4_096, max: 16_777_216 }),
    maxSessions: numberOf(given, 'max-sessions', 64, { min: 1, max: 10_000 }),
  }
}

const TEXT = { type: 'string' } as const
const FLAG = { type: 'boolean' } as const

function parsed(argv: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        ...{ url: TEXT, 'token-file': TEXT, ca: TEXT, listen: TEXT, 'tls-cert': TEXT, 'tls-key': TEXT },
        ...{ 'calls-per-minute': TEXT, 'max-answer': TEXT, 'max-sessions': TEXT },
        ...{ 'allow-host': { type: 'string', multiple: true } as const, help: FLAG, version: FLAG },
      },
    })
    return values
  } catch (error) {
    throw new CommandLineError((error as Error).message)
  }
}

type Given = ReturnType<typeof parsed>

function tokenOf(file: string | undefined, env: NodeJS.ProcessEnv): (() => string) | undefined {
  if (file !== undefined) {
    const read = () => firstLine(file)
    read()
    return read
  }
  const token = env['CINNABAR_TOKEN']?.trim()
  return token ? () => token : undefined
}

function firstLine(file: string): string {
  try {
    const [line = ''] = readFileSync(file, 'utf8').split('\n')
    if (line.trim() !== '') return line.trim()
  } catch (error) {
    throw new CommandLineError(`cannot read the token from ${file}: ${(error as Error).message}`)
  }
  throw new CommandLineError(`cannot read the token from ${file}: its first line is empty`)
}

function listenAt(text: string, given: Given): ListenAt {
  const match = /^(?:(\[[\da-fA-F:]+\]|[\w.-]+):)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[2] ?? Number.NaN)
  if (match === null || port > 65_535) {
    throw new CommandLineError(`--listen takes HOST:PORT, such as 127.0.0.1:7660, and not "${text}"`)
  }
  const host = (match[1] ?? '127.0.0.1').replace(/^\[|\]$/g, '')
  const { 'tls-cert': cert, 'tls-key': key, 'allow-host': names = [] } = given
  if ((cert === undefined) !== (key === undefined)) {
    throw new CommandLineError('a certificate needs its private key: give both --tls-cert and --tls-key')
  }
  const tls = cert !== undefined && key !== undefined ? { cert, key } : undefined
  if (tls === undefined && !LOOPBACK.test(host)) {
    const advice =
      'give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that has TLS, with --allow-host'
    throw new CommandLineError(`others could read the tokens that clients send to ${host}: ${advice}`)
  }
  return { host, port, tls, names }
}

function numberOf(
  given: Given,
  option: 'calls-per-minute' | 'max-answer' | 'max-sessions',
  usual: number,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const text = given[option]
  if (text === undefined) return usual
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= min && number <= max) return number
  throw new CommandLineError(`--${option} takes a whole number from ${min} to ${max}, and not "${text}"`)
}

/**
 * Finds out which producer to connect to, as whom, and with which secret or certificate: from options, environment and
 * configuration, in this order. Remembers where each came from for messages about a refusal. Secrets are never printed, and
 * never taken from the command line.
 */

import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ConnectOptions, Credentials } from '../client/index.ts'
import { findNode } from './cluster-node.ts'
import { findServer, type ServerPlace } from './configuration.ts'
import { ExitCode, Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

interface TransportOptions {
  readonly wrap?: readonly Layer[] | undefined
  /** Files in PEM. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

type Transport = Pick<ConnectOptions, 'wrap' | 'tls'>

export interface LoginOptions extends TransportOptions {
  readonly url?: string | undefined
  readonly user?: string | undefined
  readonly secretFile?: string | undefined
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

export interface ResolvedLogin {
  /** Several addresses of one server, or one. */
  readonly urls: readonly string[]
  /** The same as text for people. */
  readonly url: string
  readonly urlFrom: string
  readonly credentials: Credentials
  readonly transport: Transport
  /** Undefined if a token or certificate identifies the user. */
  readonly user: string | undefined
  /** What was used and where it came from, as text for people. */
  readonly used: string
}

/** Between several addresses, as they are shown. */
const URL_SEPARATOR = ', '
const LAYERS = ['tls', 'deflate'] as const
type Layer = (typeof LAYERS)[number]

/**
 * The user whose secret the server stores at its first start, for the command line on the same machine. A node of a cluster has
 * one of its own, `local@<node>`, whose name is the second line of the file.
 */
export const LOCAL_USER = 'local'
const LOCAL_USERS = /^local(@.+)?$/
const LOCAL_SECRET = 'admin.secret'
const MAX_SECRET_LINE = 65_536
/** Stands for standard input instead of the name of a file. */
const STDIN = '-'
const READABLE_BY_ALL = 0o004

/** Adds the options that say which server is asked, and as whom. */
export function withLoginOptions(command: Command): Command {
  for (const option of loginOptions()) command.addOption(option.helpGroup('Connection options:'))
  return command
}

function loginOptions(): Option[] {
  return [
    new Option(
      '--url <url>',
      'URL of the server, or HOST:PORT; several addresses of it with commas (CINNABAR_URL; default: where the configuration listens)',
    ),
    new Option('--user <name>', 'user or tenant/user (CINNABAR_USER; default: local, on a node of a cluster its own)'),
    new Option(
      '--secret-file <file>',
      "file whose first line is the password (CINNABAR_PASSWORD; default: the server's file for local)",
    ),
    new Option(
      '--token-file <file>',
      'file whose first line is a token, which also identifies the user (CINNABAR_TOKEN)',
    ),
    new Option('--wrap <layers>', 'layers of the connection in this order, such as tls,deflate (CINNABAR_WRAP)')
      .choices(LAYERS)
      .argParser((text: string, before: readonly Layer[] = []) => [...before, ...layers(text)]),
    new Option('--ca <file>', "authorities for the server's certificate (CINNABAR_CA; default: those of Node)"),
    new Option('--cert <file>', 'certificate to log in with, including its chain (CINNABAR_CERT)'),
    new Option('--key <file>', 'private key of the certificate (CINNABAR_KEY)'),
    new Option('--config <file>', "the server's configuration (CINNABAR_CONFIG)"),
  ]
}

/** Throws Failure. */
export async function resolveLogin(options: LoginOptions, terminal: Terminal): Promise<ResolvedLogin> {
  const { env } = terminal
  let found: Promise<ServerPlace> | undefined
  const server = () => {
    found ??= findServer(options.config, env)
    return found
  }
  const url =
    givenUrl(options.url, '--url') ?? givenUrl(env['CINNABAR_URL'], 'CINNABAR_URL') ?? defaultUrl(await server())
  const transport = transportOptions(options, env)
  const proof = await proofOf(options, transport, { terminal, url: url.value, server })
  return {
    urls: url.value.split(URL_SEPARATOR),
    url: url.value,
    urlFrom: url.from,
    credentials: proof.credentials,
    transport: checkTransport(transport, terminal),
    user: 'identity' in proof.credentials ? proof.credentials.identity : undefined,
    used: `${url.value} (${url.from}), ${proof.used}`,
  }
}

interface Named {
  readonly value: string
  readonly from: string
}

interface Secret extends Named {
  /** The user that it is of, if the file says so. */
  readonly user?: string | undefined
}

interface Proof {
  readonly credentials: Credentials
  readonly used: string
}

interface LoginContext {
  readonly terminal: Terminal
  readonly url: string
  readonly server: () => Promise<ServerPlace>
}

function named(value: string | undefined, from: string): Named | undefined {
  return value ? { value, from } : undefined
}

/** The options of a command that sends a token over HTTP. */
export type TokenOptions = Pick<LoginOptions, 'url' | 'tokenFile' | 'ca' | 'cert' | 'key' | 'config'>

/** Adds them; `url` says which addresses there are. */
export function withTokenOptions(command: Command, url: string): Command {
  const wanted = ['--token-file', '--ca', '--cert', '--key', '--config']
  const options = [new Option('--url <url>', url), ...loginOptions().filter(({ long }) => wanted.includes(long ?? ''))]
  for (const option of options) command.addOption(option.helpGroup('Connection options:'))
  return command
}

/** The token, where it came from, and the files of TLS. `scope`: of a token that is enough. Rejects with Failure. */
export async function resolveToken(
  options: TokenOptions,
  terminal: Terminal,
  scope: string,
): Promise<{ readonly token: string; readonly from: string; readonly tls: Transport['tls'] }> {
  const { tokenFile } = options
  const { tls } = checkTransport(transportOptions(options, terminal.env), terminal)
  const found = tokenFile
    ? { value: await readSecret(tokenFile, terminal), from: tokenFile }
    : named(terminal.env['CINNABAR_TOKEN'], 'CINNABAR_TOKEN')
  if (found !== undefined) return { token: found.value.trim(), from: found.from, tls }
  const advice = `\`cinnabar token add USER --scope '${scope}' --out FILE\`, run by an admin, makes one`
  throw new Failure(ExitCode.USAGE, `a token is needed: give --token-file FILE or CINNABAR_TOKEN.\n${advice}`)
}

/** HOST:PORT stands for tcp://HOST:PORT. */
function givenUrl(value: string | undefined, from: string): Named | undefined {
  const urls = value?.split(',').map((word) => word.trim())
  const full = urls?.filter((url) => url !== '').map((url) => (url.includes('://') ? url : `tcp://${url}`))
  return named(full?.join(URL_SEPARATOR), from)
}

/** A token or certificate identifies the user. If a user is given as well, a password is used instead. */
async function proofOf(options: LoginOptions, transport: TransportOptions, context: LoginContext): Promise<Proof> {
  const { terminal } = context
  const { user, secretFile, tokenFile } = options
  if (tokenFile) {
    if (user || secretFile) {
      throw new Failure(
        ExitCode.USAGE,
        'a token identifies the user: give either --token-file, or --user and --secret-file',
      )
    }
    const token = (await readSecret(tokenFile, terminal)).trim()
    // The file is read again for each connection, since the token may have been renewed.
    return byToken(tokenFile === STDIN ? token : () => firstLine(tokenFile).trim(), tokenFile)
  }
  if (user || secretFile) return byPassword(options, context)
  if (options.cert) return byCertificate(options.cert)
  const token = named(terminal.env['CINNABAR_TOKEN'], 'CINNABAR_TOKEN')
  if (token) return byToken(token.value.trim(), token.from)
  const isNamed = terminal.env['CINNABAR_USER'] || terminal.env['CINNABAR_PASSWORD']
  return transport.cert && !isNamed ? byCertificate(transport.cert) : byPassword(options, context)
}

function byToken(token: string | (() => string), from: string): Proof {
  return { credentials: { token }, used: `token from ${from}` }
}

function byCertificate(file: string): Proof {
  return { credentials: { certificate: true }, used: `certificate from ${file}` }
}

async function byPassword(options: LoginOptions, { terminal, url, server }: LoginContext): Promise<Proof> {
  const { env } = terminal
  const given = named(options.user, '--user') ?? named(env['CINNABAR_USER'], 'CINNABAR_USER')
  const secret: Secret =
    (await secretFromFile(options.secretFile, terminal)) ??
    named(env['CINNABAR_PASSWORD'], 'CINNABAR_PASSWORD') ??
    (given === undefined || LOCAL_USERS.test(given.value)
      ? localSecret(await server())
      : await promptedSecret(given.value, url, terminal))
  const user =
    given === undefined || given.value === LOCAL_USER
      ? { value: secret.user ?? LOCAL_USER, from: given?.from ?? 'the default' }
      : given
  const isLocal = LOCAL_USERS.test(user.value)
  return {
    credentials: {
      identity: user.value,
      password: secret.value,
      // Another program that has taken over the port must not see a secret that gives access to everything.
      ...(isLocal ? { methods: ['scram-sha-256-plus', 'scram-sha-256'] as const } : {}),
    },
    used: `user ${user.value} (${user.from}), secret from ${secret.from}`,
  }
}

function defaultUrl({ tcp }: ServerPlace): Named {
  if (!tcp) throw new Failure(ExitCode.USAGE, '`listen.tcp` is switched off in the configuration: give a --url')
  const { host, port } = tcp
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return {
    value: `tcp://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`,
    from: 'the configuration',
  }
}

async function secretFromFile(file: string | undefined, terminal: Terminal): Promise<Secret | undefined> {
  return file ? { ...(await readSecretFile(file, terminal)), from: file } : undefined
}

function localSecret({ dataDir }: ServerPlace): Secret {
  // The absolute path shows the user in which directory the file was expected.
  const file = resolve(dataDir, LOCAL_SECRET)
  try {
    return { ...secretIn(readFileSync(file, 'utf8')), from: file }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isNode = code === 'ENOENT' && findNode(dataDir) !== undefined
    const why =
      code === 'ENOENT'
        ? `${file} does not exist: the server creates it when it ${isNode ? 'leads its cluster' : 'starts'} for the first time`
        : `${file}: ${message}${code ? ': only the user who runs the server may read it' : ''}`
    const where = isNode
      ? 'Run this command on the machine of the node that leads, which `cinnabar cluster` shows,\n'
      : 'Start the server with `cinnabar serve` and run this command in the same directory (or with the same --config),\n'
    throw new Failure(
      ExitCode.FAILED,
      `no secret for the user ${LOCAL_USER}: ${why}.\n${where}` +
        'or give a login: --user NAME with --secret-file FILE or CINNABAR_PASSWORD, or --token-file FILE.',
      { cause: error },
    )
  }
}

async function promptedSecret(user: string, url: string, terminal: Terminal): Promise<Named> {
  return { value: await terminal.askSecret(`Password of ${user} at ${url}: `), from: 'the terminal' }
}

/** Options take precedence over the environment. */
function transportOptions(options: TransportOptions, env: NodeJS.ProcessEnv): TransportOptions {
  return {
    wrap: options.wrap ?? (env['CINNABAR_WRAP'] ? fromEnvironment(env['CINNABAR_WRAP']) : undefined),
    ca: options.ca ?? (env['CINNABAR_CA'] || undefined),
    cert: options.cert ?? (env['CINNABAR_CERT'] || undefined),
    key: options.key ?? (env['CINNABAR_KEY'] || undefined),
  }
}

/** Throws Failure if a file cannot be read. The client reads the files again for each connection. */
function checkTransport({ wrap, ca, cert, key }: TransportOptions, terminal: Pick<Terminal, 'note'>): Transport {
  if ((cert === undefined) !== (key === undefined)) {
    throw new Failure(ExitCode.USAGE, 'a certificate needs its private key: give both --cert and --key')
  }
  check(ca, 'authorities')
  check(cert, 'certificate')
  check(key, 'private key')
  if (key !== undefined) warnIfOpen(key, terminal)
  const isNamed = ca !== undefined || cert !== undefined
  return { ...(wrap ? { wrap } : {}), ...(isNamed ? { tls: { ca, cert, key } } : {}) }
}

function check(file: string | undefined, what: string): void {
  if (file === undefined) return
  try {
    readFileSync(file)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `cannot read the ${what} from ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function layers(text: string): Layer[] {
  return text.split(',').map((word) => {
    const layer = LAYERS.find((one) => one === word.trim())
    if (layer) return layer
    throw new InvalidArgumentError(`Allowed are ${LAYERS.join(' and ')}, separated by a comma.`)
  })
}

function fromEnvironment(text: string): Layer[] {
  try {
    return layers(text)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `CINNABAR_WRAP: ${(error as Error).message}`, { cause: error })
  }
}

/** Reads the first line of a file, or of standard input with `-`. Rejects with Failure. */
export async function readSecret(file: string, terminal: Pick<Terminal, 'input' | 'note'>): Promise<string> {
  return (await readSecretFile(file, terminal)).value
}

async function readSecretFile(
  file: string,
  terminal: Pick<Terminal, 'input' | 'note'>,
): Promise<Pick<Secret, 'value' | 'user'>> {
  try {
    if (file === STDIN) return secretIn(await readInput(terminal.input))
    // Once: it may be a pipe.
    const secret = secretIn(readFileSync(file, 'utf8'))
    warnIfOpen(file, terminal)
    return secret
  } catch (error) {
    const from = file === STDIN ? 'standard input' : file
    throw new Failure(ExitCode.USAGE, `cannot read the secret from ${from}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Throws the system's error, or one about an empty line. */
function firstLine(file: string): string {
  return lineOf(readFileSync(file, 'utf8'))
}

/** The first line, and the user in the second one if it is the secret file of a node. Throws as `firstLine`. */
function secretIn(text: string): Pick<Secret, 'value' | 'user'> {
  const [, user = ''] = text.split(/\r?\n/)
  return { value: lineOf(text), user: LOCAL_USERS.test(user) ? user : undefined }
}

/** Warns if everybody on this machine can read a file that only its owner should read. */
function warnIfOpen(file: string, { note }: Pick<Terminal, 'note'>): void {
  const stats = statSync(file)
  if (stats.isFile() && (stats.mode & READABLE_BY_ALL) !== 0) {
    note(`warning: everybody on this machine can read ${file}; run: chmod 600 ${file}`)
  }
}

function lineOf(text: string): string {
  const [line = ''] = text.split(/\r?\n/)
  if (line === '') throw new Error('the first line is empty')
  return line
}

async function readInput(input: Terminal['input']): Promise<string> {
  let text = ''
  for await (const chunk of input) {
    text += String(chunk)
    if (text.includes('\n') || text.length > MAX_SECRET_LINE) break
  }
  return text
}

/**
 * Which producer, who, and with which proof: from options, environment and configuration, in this order. Where each
 * came from is remembered, since a refusal is of little use without it. The secret itself is never said.
 */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Credentials } from '../client/index.ts'
import type { Config } from '../server/start/config.ts'
import { readConfiguration } from './configuration.ts'
import { ExitCode, Failure } from './failure.ts'
import { checkedLink, type Link, type LinkOptions, namedLink, withLinkOptions } from './link.ts'
import { firstLine, readSecret, STDIN } from './secret-file.ts'
import type { Terminal } from './terminal.ts'

export interface LoginOptions extends LinkOptions {
  readonly url?: string | undefined
  readonly user?: string | undefined
  readonly secretFile?: string | undefined
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

export interface Login {
  readonly url: string
  readonly urlFrom: string
  readonly credentials: Credentials
  readonly link: Link
  /** Whom to ask about; undefined where a token or certificate says who. */
  readonly user: string | undefined
  /** What was used and where it came from, for people. */
  readonly used: string
}

/** The user whose secret the server writes down at its first start, for this machine's own command line. */
const LOCAL_USER = 'local'
const LOCAL_SECRET = 'admin.secret'

export function withLoginOptions(command: Command): Command {
  return withLinkOptions(
    command
      .option('--url <url>', 'the producer (CINNABAR_URL; else where the configuration listens)')
      .option('--user <name>', 'user or tenant/user (CINNABAR_USER; else local)')
      .option('--secret-file <file>', "whose first line is the password (CINNABAR_PASSWORD; else the server's own)")
      .option('--token-file <file>', 'whose first line is a token, which says who (CINNABAR_TOKEN)'),
  ).option('--config <file>', "the server's configuration (CINNABAR_CONFIG)")
}

/** Throws Failure. */
export async function resolveLogin(options: LoginOptions, terminal: Terminal): Promise<Login> {
  const { env } = terminal
  let read: Promise<Config> | undefined
  const config = () => {
    read ??= readConfiguration(options.config, env)
    return read
  }
  const url = named(options.url, '--url') ?? named(env['CINNABAR_URL'], 'CINNABAR_URL') ?? defaultUrl(await config())
  const link = namedLink(options, env)
  const proof = await proofOf(options, link, { terminal, url: url.value, config })
  return {
    url: url.value,
    urlFrom: url.from,
    credentials: proof.credentials,
    link: checkedLink(link, terminal),
    user: 'identity' in proof.credentials ? proof.credentials.identity : undefined,
    used: `${url.value} (${url.from}), ${proof.used}`,
  }
}

interface Named {
  readonly value: string
  readonly from: string
}

interface Proof {
  readonly credentials: Credentials
  readonly used: string
}

interface Around {
  readonly terminal: Terminal
  readonly url: string
  readonly config: () => Promise<Config>
}

function named(value: string | undefined, from: string): Named | undefined {
  return value ? { value, from } : undefined
}

/** A token or certificate says who; whoever says it in another way as well means a password. */
async function proofOf(options: LoginOptions, link: LinkOptions, around: Around): Promise<Proof> {
  const { terminal } = around
  const { user, secretFile, tokenFile } = options
  if (tokenFile) {
    if (user || secretFile) {
      throw new Failure(ExitCode.USAGE, 'a token says who: leave out --user and --secret-file, or --token-file')
    }
    const token = (await readSecret(tokenFile, terminal)).trim()
    // Read anew for each connection: whoever renews a token writes it there.
    return byToken(tokenFile === STDIN ? token : () => firstLine(tokenFile).trim(), tokenFile)
  }
  if (user || secretFile) return byPassword(options, around)
  if (options.cert) return byCertificate(options.cert)
  const token = named(terminal.env['CINNABAR_TOKEN'], 'CINNABAR_TOKEN')
  if (token) return byToken(token.value.trim(), token.from)
  const isNamed = terminal.env['CINNABAR_USER'] || terminal.env['CINNABAR_PASSWORD']
  return link.cert && !isNamed ? byCertificate(link.cert) : byPassword(options, around)
}

function byToken(token: string | (() => string), from: string): Proof {
  return { credentials: { token }, used: `token from ${from}` }
}

function byCertificate(file: string): Proof {
  return { credentials: { certificate: true }, used: `certificate from ${file}` }
}

async function byPassword(options: LoginOptions, { terminal, url, config }: Around): Promise<Proof> {
  const { env } = terminal
  const user = named(options.user, '--user') ??
    named(env['CINNABAR_USER'], 'CINNABAR_USER') ?? { value: LOCAL_USER, from: 'the default' }
  const isLocal = user.value === LOCAL_USER
  const secret =
    (await secretFrom(options.secretFile, terminal)) ??
    named(env['CINNABAR_PASSWORD'], 'CINNABAR_PASSWORD') ??
    (isLocal ? localSecret(await config()) : await asked(user.value, url, terminal))
  return {
    credentials: {
      identity: user.value,
      password: secret.value,
      // Whatever took over the port must not be shown a secret that opens everything.
      ...(isLocal ? { methods: ['scram-sha-256-plus', 'scram-sha-256'] as const } : {}),
    },
    used: `user ${user.value} (${user.from}), secret from ${secret.from}`,
  }
}

function defaultUrl({ listen }: Config): Named {
  if (!listen.tcp) throw new Failure(ExitCode.USAGE, 'the configuration has switched `listen.tcp` off: name a --url')
  const { host, port } = listen.tcp
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return {
    value: `tcp://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`,
    from: 'where the configuration listens',
  }
}

async function secretFrom(file: string | undefined, terminal: Terminal): Promise<Named | undefined> {
  return file ? { value: await readSecret(file, terminal), from: file } : undefined
}

function localSecret({ producer }: Config): Named {
  // With the directory, for those who are in another one than they think.
  const file = resolve(producer.dataDir, LOCAL_SECRET)
  try {
    return { value: firstLine(file), from: file }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why =
      code === 'ENOENT'
        ? `there is no ${file}: the server writes it when it starts for the first time`
        : `${file}: ${message}${code ? ': only who runs the server may read it' : ''}`
    throw new Failure(
      ExitCode.FAILED,
      `no secret for the user ${LOCAL_USER}: ${why}.\n` +
        'Start the server with `npm start` and call this from the same directory (or with the same --config),\n' +
        'or say who you are: --user NAME with --secret-file FILE or CINNABAR_PASSWORD, or --token-file FILE.',
      { cause: error },
    )
  }
}

async function asked(user: string, url: string, terminal: Terminal): Promise<Named> {
  return { value: await terminal.askSecret(`Password of ${user} at ${url}: `), from: 'the terminal' }
}

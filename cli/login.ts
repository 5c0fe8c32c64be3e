/**
 * Which producer, who, and with which secret: from options, environment and configuration, in this order. Where each
 * came from is remembered, since a refusal is of little use without it. The secret itself is never said.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Credentials } from '../client/index.ts'
import type { Config } from '../server/config.ts'
import { readConfiguration } from './configuration.ts'
import { ExitCode, Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

export interface LoginOptions {
  readonly url?: string | undefined
  readonly user?: string | undefined
  readonly secretFile?: string | undefined
  readonly config?: string | undefined
}

export interface Login {
  readonly url: string
  readonly urlFrom: string
  readonly credentials: Credentials
  /** What was used and where it came from, for people. */
  readonly used: string
}

/** The user whose secret the server writes down at its first start, for this machine's own command line. */
const LOCAL_USER = 'local'
const LOCAL_SECRET = 'admin.secret'

/** Throws Failure. */
export async function resolveLogin(options: LoginOptions, terminal: Terminal): Promise<Login> {
  const { env } = terminal
  let read: Promise<Config> | undefined
  const config = () => {
    read ??= readConfiguration(options.config, env)
    return read
  }
  const url = named(options.url, '--url') ?? named(env['CINNABAR_URL'], 'CINNABAR_URL') ?? defaultUrl(await config())
  const user = named(options.user, '--user') ??
    named(env['CINNABAR_USER'], 'CINNABAR_USER') ?? { value: LOCAL_USER, from: 'the default' }
  const secret =
    secretFile(options.secretFile) ??
    named(env['CINNABAR_PASSWORD'], 'CINNABAR_PASSWORD') ??
    (user.value === LOCAL_USER ? localSecret(await config()) : await asked(user.value, url.value, terminal))
  const isLocal = user.value === LOCAL_USER
  return {
    url: url.value,
    urlFrom: url.from,
    credentials: {
      identity: user.value,
      password: secret.value,
      // Whatever took over the port must not be shown a secret that opens everything.
      ...(isLocal ? { methods: ['scram-sha-256'] as const } : {}),
    },
    used: `${url.value} (${url.from}), user ${user.value} (${user.from}), secret from ${secret.from}`,
  }
}

interface Named {
  readonly value: string
  readonly from: string
}

function named(value: string | undefined, from: string): Named | undefined {
  return value ? { value, from } : undefined
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

function secretFile(file: string | undefined): Named | undefined {
  return file ? { value: readSecret(file), from: file } : undefined
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
        'or say who you are: --user NAME with --secret-file FILE or CINNABAR_PASSWORD.',
      { cause: error },
    )
  }
}

async function asked(user: string, url: string, terminal: Terminal): Promise<Named> {
  return { value: await terminal.askSecret(`Password of ${user} at ${url}: `), from: 'the terminal' }
}

/** The first line of a file that was named for it. Throws Failure. */
export function readSecret(file: string): string {
  try {
    return firstLine(file)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `no secret can be read from ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function firstLine(file: string): string {
  const [line = ''] = readFileSync(file, 'utf8').split(/\r?\n/)
  if (line === '') throw new Error('it is empty, or begins with an empty line')
  return line
}

/** Connects for the duration of one command, and explains what to do if that fails. */
import { type ChannelOptions, type Connect, ConnectionError, type Consumer, StatusError } from '../client/index.ts'
import { ExitCode, errorCode, Failure } from './failure.ts'
import { printable } from './format.ts'
import { LOCAL_USER, type LoginOptions, type ResolvedLogin, resolveLogin } from './login.ts'
import type { Terminal } from './terminal.ts'
import { withProgress } from './terminal.ts'

export { withLoginOptions } from './login.ts'

/** The environment of a command; tests pass their own. */
export interface Cli {
  readonly terminal: Terminal
  readonly connect: Connect
}

/** `channel` are the options of the consumer's channel. Without them, a lost connection is not restored. */
export async function withConsumer(
  { terminal, connect }: Cli,
  options: LoginOptions,
  work: (consumer: Consumer) => Promise<void>,
  channel?: ChannelOptions,
): Promise<void> {
  const login = await resolveLogin(options, terminal)
  const connecting = connect(login.urls, login.credentials, {
    ...login.transport,
    ...(channel ?? { reconnect: false }),
  })
  const consumer = await withProgress(terminal, `connecting to ${login.url}`, connecting).catch((error: unknown) => {
    throw explainConnecting(error, login)
  })
  consumer.on('notice', ({ detail, code }) => terminal.note(`notice: ${printable(detail) || `code ${code}`}`))
  consumer.on('disconnected', ({ message }) => terminal.note(`${printable(message)}; reconnecting`))
  consumer.on('connected', () => terminal.note(`connected to ${login.url} again`))
  try {
    await work(consumer)
  } catch (error) {
    throw explainRefusal(error, login)
  } finally {
    await consumer.close()
  }
}

/** Throws Failure if others could read the connection. */
export function checkConfidential({ isConfidential }: Pick<Consumer, 'isConfidential'>, what: string): void {
  if (isConfidential) return
  const advice = 'run this command on the machine of the server, or use tls://, wss:// or --wrap tls'
  throw new Failure(ExitCode.FAILED, `others could read ${what} on this connection: ${advice}`)
}

function explainConnecting(error: unknown, login: ResolvedLogin): unknown {
  const { urlFrom, used } = login
  if (!(error instanceof ConnectionError)) {
    // The server has refused the channel: another user might get one.
    const refusal = explainRefusal(error, login)
    return refusal instanceof Failure
      ? new Failure(refusal.exitCode, `${refusal.message}\nUsed: ${used}`, { cause: error })
      : refusal
  }
  // The URL itself is not shown here: it may contain a password.
  if (error.code === 'BAD_URL') {
    return new Failure(ExitCode.USAGE, `${error.message}\nThe URL comes from ${urlFrom}`, { cause: error })
  }
  return new Failure(ExitCode.FAILED, `${advice(error, login)}\nUsed: ${used}`, { cause: error })
}

/** Adds to a refusal what to do, and to the end of the connection which login was used. */
function explainRefusal(error: unknown, login: ResolvedLogin): unknown {
  if (!(error instanceof StatusError || error instanceof ConnectionError)) return error
  const isRefusal = error instanceof StatusError
  const more = isRefusal ? ADVICE[error.status]?.(error, login) : `Used: ${login.used}`
  const message = more === undefined ? error.message : `${error.message}\n${more}`
  return new Failure(ExitCode.FAILED, message, { cause: error })
}

const ADVICE: Readonly<Record<string, (error: StatusError, login: ResolvedLogin) => string>> = {
  NO_SUCH_METRIC: () => '`cinnabar metrics` lists the metrics that you can read',
  NO_SUCH_CONTROL: () =>
    '`cinnabar controls` lists the controls that this user can see; another user may see more: see --user',
  NO_SUCH_CHANNEL: () => '`cinnabar channels` lists the channels of this user',
  PERMISSION_DENIED: ({ command }, login) =>
    `\`cinnabar explain ${login.user ?? 'USER'} ${command} OBJECT\`, run by an admin, shows which rule forbids it; ` +
    besidesRules(command, login),
  QUOTA_EXCEEDED: () => '`cinnabar tenant list`, run by an admin, shows how much of its quotas each tenant uses',
  BUSY: () => 'try again in a moment',
  STORAGE_FULL: () => "free space on the disk of the server's data directory; the server then continues by itself",
}

/** What can forbid a command that the rules allow. */
function besidesRules(command: string, { credentials }: ResolvedLogin): string {
  if (command === 'DEF_CHANNEL') return 'or `dial.allow` in the configuration does not include the destination'
  if (!('token' in credentials)) return 'see also --user'
  return 'or the scope of the token does not include it: see `cinnabar token list`'
}

function advice(error: ConnectionError, login: ResolvedLogin): string {
  const { urls, credentials } = login
  const [url = '', ...others] = urls
  switch (error.code) {
    case 'UNREACHABLE':
      return errorCode(error.cause) === 'ECONNREFUSED' && others.length === 0
        ? `nothing listens on ${new URL(url).host}: start the server with \`cinnabar serve\`, or choose another one with --url`
        : `${error.message.trim()}\n${addressAdvice(url)}`
    case 'TIMEOUT':
    case 'PROTOCOL':
      return `${error.message}\n${addressAdvice(url)}`
    case 'LOGIN_FAILED':
      return `${error.message}\n${notAdmitted(error, login)}`
    case 'NO_METHOD':
      return 'certificate' in credentials ? `${error.message}\n${NOT_ADMITTED.certificate}` : error.message
    case 'SERVER_NOT_PROVEN':
      return `${error.message}\nThis is not the server that the secret belongs to; the secret was not sent`
    case 'UNTRUSTED':
      return `${error.message}\nThe authorities are those of --ca FILE or CINNABAR_CA; no secret was sent`
    case 'BAD_TLS':
      return `${error.message}\nThe files are those of --ca, --cert and --key`
    case 'NO_LAYER':
      return `${error.message}\nOmit --wrap, or enable the layer on the server: \`tls\` needs its section [tls]`
    default:
      return error.message
  }
}

/** A login that was refused for another reason than a wrong secret gets the advice for that reason. */
function notAdmitted({ cause }: ConnectionError, login: ResolvedLogin): string {
  const other = cause instanceof StatusError ? ADVICE[cause.status]?.(cause, login) : undefined
  if (other !== undefined) return other
  // A node that follows passes connections on, and for the node that leads they do not come from its own machine.
  if (login.user?.startsWith(OWN_USER)) return NOT_ADMITTED_HERE
  return login.user === LOCAL_USER ? NOT_ADMITTED_LOCAL : NOT_ADMITTED[kindOf(login.credentials)]
}

const NOT_ADMITTED_LOCAL =
  'The secret seems to be that of another server: run this command with the `export` line that the server has printed, or ' +
  'with the --config that it was started with. The user local counts only on the machine of the server'

/** Each node of a cluster has a user for its own machine. */
const OWN_USER = 'local@'
const NOT_ADMITTED_HERE =
  'The user of a node of a cluster counts only on its machine and only while that node leads: `cinnabar cluster` says which one ' +
  'leads. Run this command there, or log in with --user'

type Kind = 'password' | 'token' | 'certificate'

const NOT_ADMITTED: Readonly<Record<Kind, string>> = {
  password:
    'Unless the line above gives another reason, the user does not exist or the secret is wrong: see --user and --secret-file',
  token:
    'The token was revoked, has expired, or does not belong to this server: `cinnabar token list`, run by an admin, shows which; ' +
    'for a JWT, see the log of the server',
  certificate:
    'No user has the name in the certificate, or it is no longer valid: see `client_ca` and `client_revoked` of the server',
}

function kindOf(credentials: ResolvedLogin['credentials']): Kind {
  if ('token' in credentials) return 'token'
  return 'certificate' in credentials ? 'certificate' : 'password'
}

/** The address may be another port of the same server, or belong to another program. */
function addressAdvice(url: string): string {
  return ADDRESSES[new URL(url).protocol] ?? ''
}

const ADDRESSES: Readonly<Record<string, string>> = {
  'tcp:':
    'The address must be that of `listen.tcp`; for `listen.tls` use tls://, for the HTTP port ws://HOST:PORT/monitor',
  'tls:': 'The address must be that of `listen.tls`; for `listen.tcp` use tcp:// with --wrap tls',
  'ws:':
    'The URL must be ws://HOST:PORT/monitor with the address of `listen.http`, or wss:// with that of `listen.https`',
  'wss:':
    'The URL must be wss://HOST:PORT/monitor with the address of `listen.https`, or of a TLS proxy in front of `listen.http`',
}

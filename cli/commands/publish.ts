/** `cinnabar publish`: numbers of a shell script as metrics, over OTLP. */
import type { Command } from 'commander'
import { ConnectionError, PublishError, type PublishedValue, publish } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { httpUrlOf } from '../http.ts'
import { resolveToken, type TokenOptions, withTokenOptions } from '../login.ts'
import type { Cli } from '../session.ts'
import { withProgress } from '../terminal.ts'

const FAMILY = 'otlp.'
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i

interface PublishCommandOptions extends TokenOptions {
  readonly counter?: boolean
  readonly unit?: string
  readonly description?: string
  readonly label?: readonly string[]
}

export function addPublish(program: Command, { terminal }: Cli): void {
  const url =
    'http:// or https:// URL of the server (CINNABAR_URL if it is one; default: `listen.http` of the configuration)'
  withTokenOptions(program.command('publish'), url)
    .description('publish numbers as metrics, and wait until they are stored: `jobs.done=17` becomes `otlp.jobs.done`')
    .argument(
      '<name=value...>',
      'values, and labels for all of them: the first is a value, and so is each other one with a dot in its name',
    )
    .option('--counter', 'the values are sums that only grow; without it they are gauges')
    .option('--unit <unit>', 'their unit, such as s, By or {job}')
    .option('--description <text>', 'what they mean')
    .option('--label <name=text>', 'a label, also one with a dot in its name; may be repeated', collected)
    .action(async (words: string[], options: PublishCommandOptions) => {
      const values = valuesOf(words, options)
      const { token, from, tls } = await resolveToken(options, terminal, 'PUBLISH otlp.*')
      const to = await httpUrlOf(options, terminal, 'values go to')
      const publishing = publish(to, { token }, values, { tls })
      try {
        await withProgress(terminal, 'waiting until the server has stored the values', publishing)
      } catch (error) {
        throw explained(error, to, from)
      }
    })
}

function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** Throws Failure. */
function valuesOf(words: readonly string[], options: PublishCommandOptions): PublishedValue[] {
  const numbers = new Map<string, number>()
  const labels = new Map<string, string>()
  const addLabel = ([name, text]: [string, string]): void => {
    if (labels.has(name)) throw usage(`the label ${name} is given twice`)
    labels.set(name, text)
  }
  for (const [index, word] of words.entries()) {
    const [name, text] = assignment(word)
    if (index > 0 && !name.includes('.')) {
      addLabel([name, text])
      continue
    }
    if (name.startsWith(FAMILY)) throw usage(`${name}: leave ${FAMILY} out, the server puts it before the name`)
    if (numbers.has(name)) throw usage(`${name} is given twice`)
    if (!NUMBER.test(text)) {
      const advice = index > 0 ? `; if ${name} is a label, write --label ${name}=${text}` : ''
      throw usage(`${name}: ${JSON.stringify(text)} is not a number${advice}`)
    }
    const number = Number(text)
    if (!Number.isFinite(number)) throw usage(`${name}: ${text} is larger than a number can be`)
    numbers.set(name, number)
  }
  for (const word of options.label ?? []) addLabel(assignment(word))
  const { unit, description, counter: isCounter } = options
  const common = { labels: Object.fromEntries(labels), unit, description, isCounter }
  return Array.from(numbers, ([name, value]) => ({ name, value, ...common }))
}

function assignment(word: string): [name: string, text: string] {
  const at = word.indexOf('=')
  if (at < 1) throw usage(`"${word}" is neither a value nor a label: write NAME=VALUE`)
  return [word.slice(0, at), word.slice(at + 1)]
}

function usage(message: string): Failure {
  return new Failure(ExitCode.USAGE, message)
}

function explained(error: unknown, url: string, tokenFrom: string): unknown {
  if (!(error instanceof PublishError || error instanceof ConnectionError)) return error
  // The URL itself is not shown here: it may contain a password.
  if (error instanceof ConnectionError && error.code === 'BAD_URL') {
    return new Failure(ExitCode.USAGE, error.message, { cause: error })
  }
  const advice = error instanceof PublishError ? refusalAdvice(error) : connectionAdvice(error)
  const lines = [error.message, advice, `Used: ${url}, token from ${tokenFrom}`]
  return new Failure(ExitCode.FAILED, lines.filter((line) => line !== '').join('\n'), { cause: error })
}

function connectionAdvice({ code }: ConnectionError): string {
  switch (code) {
    case 'UNREACHABLE':
      return 'The address must be that of `listen.http` or `listen.https` of the server: see --url'
    case 'UNTRUSTED':
      return 'The authorities are those of --ca FILE or CINNABAR_CA; no secret was sent'
    case 'BAD_TLS':
      return 'The files are those of --ca, --cert and --key'
    default:
      return ''
  }
}

function refusalAdvice({ status, retryAfterS = 1 }: PublishError): string {
  switch (status) {
    case 200:
      return (
        'Where PUBLISH is not allowed, a rule has to name it (`cinnabar role list`), and the scope of the token too ' +
        '(`cinnabar token list`); `cinnabar tenant list` shows the quotas'
      )
    case 401:
      return 'The token was revoked, has expired, or does not belong to this server: `cinnabar token list`, run by an admin, shows which'
    case 404:
      return 'The address must be that of `listen.http` or `listen.https` of the server: see --url'
    case 429:
    case 503:
      return `Try again in ${retryAfterS} s`
    default:
      return ''
  }
}

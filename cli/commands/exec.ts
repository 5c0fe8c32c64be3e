/** `cinnabar exec`: runs a control and waits for its result. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Arguments, BasicType, valueToJson } from '../../client/index.ts'
import { type Assignments, parseAssignments, toTypedArguments } from '../assignments.ts'
import { controlParameters } from '../catalogue.ts'
import { type ControlResult, checkOutcome, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { formatValue } from '../output/text.ts'
import { whileWaiting } from '../progress.ts'
import { readSecret } from '../secret-file.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'

interface ExecOptions extends LoginOptions {
  readonly idempotencyKey?: string
  readonly dryRun?: boolean
  readonly argFile?: Assignments
  readonly json?: boolean
}

/** Names of arguments that are secrets wherever they stand. */
const SECRETS = ['password', 'secret', 'token']

const AFTER_HELP = `
Exit codes: 0 ok, or dry-run (judged, and not run), 1 refused, failed or timeout, 3 unknown: the server or the connection
ended in between, and whether it ran cannot be known. With the same --idempotency-key a control runs once within 24 hours:
asked again, it gives the stored result.`

export function addExec(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('exec'))
    .description('run a control and print its result; exits with 1 unless that is ok, with 3 where it cannot be known')
    .argument('<control>', 'as `cinnabar get producer.controls` names it')
    .argument('[name=value...]', 'its arguments, as that shows them')
    .option('--idempotency-key <key>', 'a name for this one run: asked again with it, the control does not run again')
    .option('--dry-run', 'have rights and arguments judged; nothing runs')
    .option(
      '--arg-file <name=file>',
      'an argument that is secret, from the first line of a file; again for more',
      argFile,
    )
    .option('--json', 'as one JSON object; the time in microseconds since 1970')
    .addHelpText('after', AFTER_HELP)
    .action(async (control: string, words: string[], options: ExecOptions) => {
      const assignments = parseAssignments(words)
      const shown = SECRETS.find((name) => assignments.has(name))
      if (shown) {
        const advice = `others can see what stands on a command line: --arg-file ${shown}=FILE`
        throw new Failure(ExitCode.USAGE, `the argument ${shown} is a secret, and ${advice}`)
      }
      await withConsumer(cli, options, async (consumer) => {
        const { argFile = new Map<string, string>(), idempotencyKey, dryRun } = options
        if (argFile.size > 0) checkConfidential(consumer, 'what stands in a file')
        const args: Arguments = {
          ...(await toTypedArguments(assignments, () => controlParameters(consumer, control))),
          ...(await readAll(argFile)),
          ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
          ...(dryRun ? { dry_run: true } : {}),
        }
        const running = runControl(consumer, control, args)
        const result = await whileWaiting(terminal, `${control} is running`, running)
        await terminal.print(options.json ? toJson(control, result) : toText(result))
        if (result.outcome === 'dry-run') terminal.note('a dry run: nothing was done')
        checkOutcome(control, result)
      })
    })

  async function readAll(files: Assignments): Promise<Record<string, string>> {
    const secrets: Record<string, string> = {}
    for (const [name, file] of files) secrets[name] = await readSecret(file, terminal)
    return secrets
  }
}

function toJson(control: string, { value, ...result }: ControlResult): string {
  return JSON.stringify({ control, ...result, value: valueToJson(value) })
}

function toText({ outcome, detail, value }: ControlResult): string {
  const said = detail ? `${outcome}: ${detail}` : outcome
  return value.type === BasicType.VOID ? said : `${said}\n${formatValue(value)}`
}

function argFile(text: string, before: Assignments = new Map()): Assignments {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError('It has to be the name of an argument and a file.')
  return new Map([...before, [text.slice(0, at), text.slice(at + 1)]])
}

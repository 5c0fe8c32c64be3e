/** `cinnabar channels define`: creates a channel for which the producer dials the consumer [MON 14]. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { parseAssignments, toTypedArguments } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { readSecret } from '../login.ts'
import { controlParameters } from '../records.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

interface DefineOptions extends LoginOptions {
  readonly dialSecretFile?: string
  readonly subscribe?: readonly string[]
}

/** The minimum of [MON 14]. */
const MIN_SECRET_BYTES = 16
const ONE_WAY = /^gmetric:/i

export function addChannelsDefine(channels: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(channels.command('define'))
    .description('define a channel whose URL the server dials, and print its id')
    .argument('<destination>', 'tcp://, tls://, ws:// or wss:// URL of a consumer that listens, or gmetric://HOST:PORT')
    .argument('[name=value...]', 'settings as for the control channel.configure: max_bytes=1048576')
    .option('--dial-secret-file <file>', 'file whose first line authenticates the consumer: at least 16 bytes')
    .option(
      '--subscribe <metric>',
      'metric to send over the channel; may be repeated',
      (metric, before: string[] = []) => [...before, metric],
    )
    .action((destination: string, words: string[], options: DefineOptions) => {
      const settings = parseAssignments(words)
      if (settings.has('secret')) {
        throw new Failure(ExitCode.USAGE, 'others can see the command line: use --dial-secret-file FILE for the secret')
      }
      if (options.dialSecretFile === undefined && !ONE_WAY.test(destination)) {
        throw new Failure(
          ExitCode.USAGE,
          'the consumer must authenticate itself to the server: add --dial-secret-file FILE',
        )
      }
      return withConsumer(cli, options, async (consumer) => {
        const typed = await toTypedArguments(settings, () => controlParameters(consumer, 'channel.configure'))
        const secret = await secretOf(options, consumer)
        const defining = consumer.defChannel(destination, { ...typed, ...(secret ? { secret } : {}) })
        const channel = await withProgress(terminal, 'defining the channel', defining)
        try {
          for (const metric of options.subscribe ?? []) {
            await consumer.subscribe(await consumer.collect(metric), channel)
          }
        } catch (error) {
          // A misspelled name must not leave a channel that nobody knows of.
          await consumer.delChannel(channel).catch(() => {})
          throw error
        }
        await terminal.print(String(channel))
        terminal.note(`\`cinnabar channels ${channel}\` shows whether it is connected`)
      })
    })

  async function secretOf({ dialSecretFile }: DefineOptions, consumer: Consumer): Promise<Uint8Array | undefined> {
    if (dialSecretFile === undefined) return undefined
    checkConfidential(consumer, 'the secret')
    const secret = new TextEncoder().encode(await readSecret(dialSecretFile, terminal))
    if (secret.length >= MIN_SECRET_BYTES) return secret
    const length = `at least ${MIN_SECRET_BYTES} bytes`
    throw new Failure(ExitCode.USAGE, `the secret in ${dialSecretFile} is too short: it must have ${length}`)
  }
}

/** `cinnabar channels define`: a channel that the producer carries to a consumer by itself [MON 14]. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { parseAssignments, toTypedArguments } from '../assignments.ts'
import { controlParameters } from '../catalogue.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { whileWaiting } from '../progress.ts'
import { readSecret } from '../secret-file.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'

interface DefineOptions extends LoginOptions {
  readonly dialSecretFile?: string
  readonly subscribe?: readonly string[]
}

/** [MON 14] */
const MIN_SECRET_BYTES = 16
const ONE_WAY = /^gmetric:/i

export function addChannelsDefine(channels: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(channels.command('define'))
    .description('define a channel whose URL the server dials, and print its id')
    .argument('<destination>', 'tcp://, tls://, ws:// or wss:// of a consumer that listens, or gmetric://HOST:PORT')
    .argument('[name=value...]', 'its settings, as channel.configure takes them: max_bytes=1048576')
    .option('--dial-secret-file <file>', 'whose first line the consumer proves itself with: 16 characters or more')
    .option('--subscribe <metric>', 'what it is to carry; again for more', (metric, before: string[] = []) => [
      ...before,
      metric,
    ])
    .action((destination: string, words: string[], options: DefineOptions) => {
      const settings = parseAssignments(words)
      if (settings.has('secret')) {
        throw new Failure(ExitCode.USAGE, 'others can see what stands on a command line: --dial-secret-file FILE')
      }
      if (options.dialSecretFile === undefined && !ONE_WAY.test(destination)) {
        throw new Failure(ExitCode.USAGE, 'the consumer has to prove itself to the server: --dial-secret-file FILE')
      }
      return withConsumer(cli, options, async (consumer) => {
        const typed = await toTypedArguments(settings, () => controlParameters(consumer, 'channel.configure'))
        const secret = await secretOf(options, consumer)
        const defining = consumer.defChannel(destination, { ...typed, ...(secret ? { secret } : {}) })
        const channel = await whileWaiting(terminal, 'defining the channel', defining)
        try {
          for (const metric of options.subscribe ?? []) {
            await consumer.subscribe(await consumer.collect(metric), channel)
          }
        } catch (error) {
          // A name that is misspelt must not leave a channel behind that nobody knows of.
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
    const bytes = `${MIN_SECRET_BYTES} bytes or more`
    throw new Failure(ExitCode.USAGE, `the secret in ${dialSecretFile} is too short: it has to have ${bytes}`)
  }
}

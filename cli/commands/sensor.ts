/** `cinnabar sensor`: keeps the values of a sensor out while something disturbs them, and lets them in again. */
import type { Command } from 'commander'
import { tellControl } from '../control.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

export function addSensor(program: Command, cli: Cli): void {
  const sensor = program.command('sensor').description('keep the values of a sensor out for a while')
  for (const [verb, description] of [
    ['fence', 'keep the values of a sensor out until it is resumed, also over a restart of the server'],
    ['resume', 'let the values of a sensor in again'],
  ] as const) {
    withLoginOptions(sensor.command(verb))
      .description(description)
      .argument('<sensor>', 'as `cinnabar get producer.sensors` names it')
      .action((name: string, options: LoginOptions) =>
        withConsumer(cli, options, async (consumer) => {
          await tellControl(cli.terminal, consumer, `sensor.${verb}`, { sensor: name })
        }),
      )
  }
}

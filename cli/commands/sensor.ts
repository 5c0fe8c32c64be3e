/** `cinnabar sensor`: rejects the values of a sensor while something disturbs them, and accepts them again. */
import type { Command } from 'commander'
import { callControl } from '../control.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withLoginOptions } from '../session.ts'

export function addSensor(program: Command, cli: Cli): void {
  const sensor = program.command('sensor').description('reject the values of a sensor for a while')
  for (const [verb, description] of [
    ['fence', 'reject the values of a sensor until it is resumed, even after a restart of the server'],
    ['resume', 'accept the values of a sensor again'],
  ] as const) {
    withLoginOptions(sensor.command(verb))
      .description(description)
      .argument('<sensor>', 'name as listed by `cinnabar get producer.sensors`')
      .action((name: string, options: LoginOptions) => callControl(cli, options, `sensor.${verb}`, { sensor: name }))
  }
}

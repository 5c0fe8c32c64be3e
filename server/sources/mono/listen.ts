/** Where Mono agents connect, and the files that they write instead. */

import { type Address, formatAddress } from '../../core/address.ts'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { Feeds } from '../by-tenant.ts'
import { followFile } from '../io/file.ts'
import { type PacingOptions, pacersOf } from '../io/pacers.ts'
import { listenFeed } from '../io/tcp.ts'
import type { MonoSection } from './config.ts'
import type { MonoSensor } from './sensor.ts'

type Opened = <T extends { close(): Promise<void> }>(listening: T) => T

export interface MonoListening extends PacingOptions {
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly log: Logger
}

/** Gives the addresses that were bound. Rejects with ListenError. */
export async function listenMono(
  sensors: Feeds<MonoSensor>,
  { listeners, files }: Pick<MonoSection, 'listeners' | 'files'>,
  { clock, journal, behind, log }: MonoListening,
  opened: Opened,
): Promise<readonly Address[]> {
  const pacerOf = pacersOf(sensors.all(), { clock, journal, behind })
  const bound: Address[] = []
  for (const { key, listen, ...through } of listeners) {
    const listening = opened(
      await listenFeed({
        address: listen,
        key,
        open(from, _port, back) {
          const sensor = sensors.of(from)
          const taker = sensor.open(from, through, back)
          return taker && { taker, pacer: pacerOf(sensor) }
        },
      }),
    )
    bound.push(listening.address)
    for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(listening.address)}`)
  }
  // Who writes a file is not known: they are of the section's own tenant.
  for (const { path, agent, follow } of files) {
    const open = () => sensors.own.openFile(agent)
    const failed = (error: Error): void => log.warn({ err: error, path }, 'a file of a Mono agent cannot be read')
    opened(followFile({ path, follow, clock, pacer: pacerOf(sensors.own), open, failed }))
    sensors.own.listens(`file ${path}`)
  }
  return bound
}

/** One run of `durable` with one contender: first value sent to last acknowledgement answered, and what the server used. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rounded } from '../rig/figures.ts'
import type { Contender, Started } from './peers/contender.ts'
import { EndProcess } from './processes/end-process.ts'

export interface Figures {
  readonly name: string
  readonly settings: string
  readonly values: number
  /** Of them dropped by the server's own policy, and reported. */
  readonly dropped: number
  readonly seconds: number
  readonly valuesPerSecond: number
  readonly cpuPerMillion: number
  /** Of the server that the values come through before, if there is one. */
  readonly belowCpuPerMillion?: number
  /** Of what else works for the server, by what it is. */
  readonly othersCpuPerMillion?: Readonly<Record<string, number>>
  /** Of the publisher and the consumer: whether they are what is measured. */
  readonly endsCpuPerMillion: readonly [number, number]
  readonly peakRssMiB: number
  readonly writtenMiB: number
  readonly loopDelayP99Ms: number | undefined
  /** Of a VALUE frame, if the consumer tells. */
  readonly frameBytes?: number
}

/**
 * `parent`: where the server's directory is made; it decides which disk is measured. `afterwards`: what else is measured while the
 * server runs.
 */
export async function runOnce(
  contender: Contender,
  parent: string,
  afterwards: (started: Started) => Promise<void> = async () => {},
): Promise<Figures> {
  const directory = mkdtempSync(join(parent, 'cinnabar-bench-'))
  try {
    const started = await contender.start(directory)
    try {
      const figures = await measured(contender, started)
      await afterwards(started)
      return figures
    } finally {
      if (started.stop !== undefined) await started.stop()
      else {
        await started.server.stop()
        await started.below?.stop()
      }
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function measured(contender: Contender, started: Started): Promise<Figures> {
  const { server } = started
  const ends: EndProcess[] = []
  try {
    const consumer = await EndProcess.start(started.consumer)
    ends.push(consumer)
    const publisher = await EndProcess.start(started.publisher)
    ends.push(publisher)
    server.resetLoopDelay()
    const before = server.cost()
    const belowBefore = started.below?.cost()
    const othersBefore = othersCpuSeconds(started)
    const [sent, acknowledged] = await Promise.all([publisher.run(), consumer.run()])
    const after = server.cost()
    const belowAfter = started.below?.cost()
    const othersAfter = othersCpuSeconds(started)
    const loopDelayP99Ms = await server.loopDelayP99Ms()
    const { name, settings, values } = contender
    const seconds = acknowledged.ended - sent.began
    const perMillion = (cpuSeconds: number): number => rounded((cpuSeconds / values) * 1e6, 3)
    return {
      name,
      settings,
      values,
      dropped: acknowledged.dropped,
      seconds: rounded(seconds, 2),
      valuesPerSecond: Math.round(values / seconds),
      cpuPerMillion: perMillion(after.cpuSeconds - before.cpuSeconds),
      ...(belowBefore &&
        belowAfter && { belowCpuPerMillion: perMillion(belowAfter.cpuSeconds - belowBefore.cpuSeconds) }),
      ...(started.others && {
        othersCpuPerMillion: Object.fromEntries(
          Object.entries(othersAfter).map(([other, after]) => [other, perMillion(after - (othersBefore[other] ?? 0))]),
        ),
      }),
      endsCpuPerMillion: [perMillion(sent.cpuSeconds), perMillion(acknowledged.cpuSeconds)],
      peakRssMiB: Math.round(after.peakRssMiB),
      writtenMiB: Math.round(after.writtenMiB - before.writtenMiB),
      loopDelayP99Ms: loopDelayP99Ms === undefined ? undefined : rounded(loopDelayP99Ms, 1),
      ...(acknowledged.valueBytes && { frameBytes: rounded(acknowledged.valueBytes / values, 1) }),
    }
  } finally {
    for (const end of ends) await end.close()
  }
}

function othersCpuSeconds({ others = {} }: Started): Record<string, number> {
  const sums = Object.entries(others).map(
    ([name, servers]) => [name, servers.reduce((sum, server) => sum + server.cost().cpuSeconds, 0)] as const,
  )
  return Object.fromEntries(sums)
}

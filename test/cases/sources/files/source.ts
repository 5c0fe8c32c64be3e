/** `files.open`: how many files this machine has open (Linux). */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import { section } from '../../../../server/config/schema.ts'
import { key, path } from '../../../../server/config/value-types.ts'
import type { Measurement, Metric, PolledSensor } from '../../../../server/metrics/metric.ts'
import type { Source } from '../../../../server/sources/source.ts'

const filesSection = section(
  z
    .strictObject({ table: key(path(), '/proc/sys/fs/file-nr', 'The file in which the kernel counts open files.') })
    .describe('The open files of this machine.'),
)

const open: Metric = {
  name: 'files.open',
  kind: 'continuous',
  type: BasicType.UINT64,
  unit: '1',
  description: 'Files that this machine has open.',
  parameters: [],
}

export const files: Source<typeof filesSection> = {
  section: filesSection,
  open({ clock }, { table }) {
    const sensor: PolledSensor = {
      polled: true,
      family: 'files.',
      owner: 'producer',
      personal: false,
      metrics: () => [open],
      metric: (name) => (name === open.name ? open : undefined),
      labels: ({ name }) => ({ name }),
      check() {},
      measure: () => ({ value: read(table), time: clock.microseconds() }),
    }
    return { sensors: [sensor] }
  },
}

function read(table: string): Measurement['value'] {
  try {
    const [count = ''] = readFileSync(table, 'utf8').split('\t')
    return { type: BasicType.UINT64, value: BigInt(count) }
  } catch {
    return VOID
  }
}

/** Rig: programs that run over their time, with children of their own: all of each process group ends, and its leader is reaped. */
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import type { ControlContext } from '../../server/kernel/controls/control.ts'
import { execControls } from '../../server/kernel/controls/exec/exec-controls.ts'
import { systemClock } from '../../server/kernel/core/clock.ts'
import type { Rig } from '../rig/rig.ts'
import { execTables } from '../support/exec-tables.ts'
import { leftOf, zombies } from '../support/processes.ts'
import type { Json } from '../support/records.ts'

const AT_ONCE = 10
const SCRIPT = 'echo $$; sleep 300 & (sleep 300; sleep 300) & sleep 300'

export const timeouts: Rig = async ({ count, say }) => {
  const toml = `[[exec]]\nname = "exec.late"\nargv = ["/bin/sh", "-c", "${SCRIPT}"]\ntimeout = "50ms"\n`
  const [control] = execControls(execTables(toml), systemClock())
  if (control === undefined) throw new Error('there is no such control')
  const { signal } = new AbortController()
  const groups = new Set<number>()
  const outcomes = { timeout: 0, others: 0 }
  let left = count
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const { outcome, value } = await control.prepare(new Map(), {} as ControlContext)(signal)
      if (outcome === 'timeout') outcomes.timeout++
      else outcomes.others++
      const { stdout }: Json = valueToJson(value)
      const group = Number(stdout)
      // One that was ended before it had said anything is found among the zombies or not at all.
      if (group > 0) groups.add(group)
      if (outcomes.timeout % 200 === 0) say(`${outcomes.timeout} timeouts`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const remaining = await leftOf(groups)
  return {
    timeouts: outcomes.timeout,
    lost: outcomes.others,
    unexpected: remaining.length,
    reused: 0,
    groups: groups.size,
    zombies: zombies().length,
    left: remaining.length,
  }
}

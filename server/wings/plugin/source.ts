/** Plug-ins: modules of the operator that add sensors and controls. One that cannot be loaded costs nothing but itself. */
import type { Source } from '../../kit/source.ts'
import type { pluginSection } from './config.ts'
import { HostedPlugin } from './plugin.ts'

export const plugin: Source<typeof pluginSection> = {
  async open(kit, tables) {
    const taken = new Set<string>()
    const plugins = tables.map((table) => new HostedPlugin(table, kit, taken))
    // One after the other, so that the first to name a family has it.
    for (const one of plugins) {
      await one.load()
      kit.controls.add(...one.controls)
    }
    return {
      statuses: plugins,
      close() {
        for (const one of plugins) one.close()
      },
    }
  },
}

/** The lines about the host: who it is, load, and bars for what can be full. */

import { formatBytes, formatDuration } from '../output/quantity.ts'
import type { Colors } from '../terminal.ts'
import { cellWidth, fitted, safe } from './cells.ts'
import type { HostSummary, Space } from './host.ts'

const MAX_BAR = 30
const MIN_BAR = 8

/** From the most to the least important, each of exactly `columns` cells. `url`: where it was reached. */
export function headLines(host: HostSummary, url: string, columns: number, colors: Colors): string[] {
  const bar = Math.min(MAX_BAR, Math.floor(columns / 4))
  const line = (label: string, part: number | undefined, text: string) => {
    const name = label.padEnd(5)
    if (bar < MIN_BAR) return fitted(name + text, columns)
    return `${name}[${barOf(part, bar, colors)}] ${fitted(text, columns - name.length - bar - 3)}`
  }
  return [
    titleLine(host, url, columns, colors),
    line('cpu', host.cpu.busy, cpuText(host)),
    line('mem', share(host.memory), `${spaceText(host.memory)}   swap ${spaceText(host.swap)}`),
    line(
      'disk',
      share(host.disk),
      `${spaceText(host.disk)} on /   read ${rateText(host.disk.read)}  written ${rateText(host.disk.written)}`,
    ),
    fitted(`net  received ${rateText(host.net.received)}  sent ${rateText(host.net.sent)}`, columns),
  ]
}

function titleLine(host: HostSummary, url: string, columns: number, colors: Colors): string {
  const name = safe(host.name) || 'producer'
  const parts = [
    host.uptime === undefined ? '' : `up ${formatDuration(host.uptime * 1000)}`,
    `load ${host.load.map((load) => load?.toFixed(2) ?? '-').join(' ')}`,
    host.serverUptime === undefined ? '' : `${safe(host.software)} up ${formatDuration(host.serverUptime * 1000)}`,
    host.storage === '' || host.storage === 'ok' ? '' : `storage ${safe(host.storage)}`,
    safe(url),
  ]
  const text = parts.filter((part) => part !== '').join('   ')
  const shown = fitted(name, Math.min(columns, cellWidth(name)))
  return colors.bold(shown) + fitted(`   ${text}`, columns - cellWidth(shown))
}

function cpuText({ cpu, cpus }: HostSummary): string {
  const number = cpus === undefined ? '' : ` of ${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'}`
  const iowait = cpu.iowait === undefined ? '' : `  iowait ${percent(cpu.iowait)}`
  return `${percent(cpu.busy)}${number}   user ${percent(cpu.user)}  system ${percent(cpu.system)}${iowait}`
}

function spaceText({ used, total }: Space): string {
  if (total === 0) return 'none'
  return used === undefined || total === undefined ? '-' : `${formatBytes(used)} of ${formatBytes(total)}`
}

function share({ used, total }: Space): number | undefined {
  return used === undefined || !total ? undefined : (100 * used) / total
}

function rateText(rate: number | undefined): string {
  return rate === undefined ? '-' : `${formatBytes(rate)}/s`
}

function percent(number: number | undefined): string {
  return number === undefined ? '-' : `${number.toFixed(1)} %`
}

function barOf(part: number | undefined, width: number, colors: Colors): string {
  const filled = Math.min(width, Math.round(((part ?? 0) / 100) * width))
  const color = (part ?? 0) >= 90 ? colors.red : (part ?? 0) >= 70 ? colors.yellow : colors.green
  return color('|'.repeat(filled)) + ' '.repeat(width - filled)
}

// Lets Claudomator's fence judge each tool call before it runs. If that fails, the call is denied.
import { spawnSync } from "node:child_process"

export const ClaudomatorFence = async ({ directory }) => ({
  "tool.execute.before": async ({ tool }, { args }) => {
    const judged = spawnSync("sh", ["-c", process.env.CLAUDOMATOR_FENCE || "exit 2"], {
      input: JSON.stringify({ tool_name: tool, tool_input: args, cwd: directory }),
      cwd: directory,
      encoding: "utf8",
    })
    if (judged.status !== 0) throw new Error(judged.stderr || "The fence of this run could not be started.")
    const verdict = JSON.parse(judged.stdout)
    if (verdict.decision === "deny") throw new Error(verdict.reason)
  },
})

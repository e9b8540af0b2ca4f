/** What the module was registered with; injectable. */
export class GpuaasSettings {
  /** How long a GPU that could not return to Spatial is left alone. */
  returnRetryMs!: number;
  /** Before a node whose initialisation failed is tried again; doubled with each further failure, up to ten minutes. */
  initRetryMs!: number;
  /** How long a simulated device takes to switch. */
  simulatedSwitchMs!: number;
}

# SPDX-License-Identifier: GPL-2.0-only
#
# A NixOS module, not tested:
#
#     imports = [ ./znsage/dist/nix/module.nix ];
#     services.znsage = {
#       enable = true;
#       settings.swap = {
#         device = "/dev/disk/by-id/nvme-VENDOR_MODEL_SERIAL";
#         priority = 10;
#       };
#     };
{ config, lib, pkgs, ... }:
let
  cfg = config.services.znsage;
  src = lib.cleanSource ../..;
  version = (lib.importTOML ../../Cargo.toml).workspace.package.version;

  command = pkgs.rustPlatform.buildRustPackage {
    pname = "znsage";
    inherit src version;
    cargoLock.lockFile = ../../Cargo.lock;
    cargoBuildFlags = [ "-p" "znsage" ];
    doCheck = false;
    nativeBuildInputs = [ pkgs.pkg-config ];
    buildInputs = [ pkgs.elfutils pkgs.zlib ];
  };

  kernel = config.boot.kernelPackages.kernel;
  kernelModule = pkgs.stdenv.mkDerivation {
    pname = "znsage-module";
    version = "${version}-${kernel.version}";
    inherit src;
    nativeBuildInputs = kernel.moduleBuildDependencies;
    hardeningDisable = [ "pic" "format" ];
    buildPhase = ''
      make -C ${kernel.dev}/lib/modules/${kernel.modDirVersion}/build M=$PWD/kmod \
        CONFIG_DEBUG_INFO_BTF_MODULES= modules
    '';
    installPhase = ''
      install -D kmod/znsage.ko $out/lib/modules/${kernel.modDirVersion}/updates/znsage.ko
    '';
  };
in
{
  options.services.znsage = {
    enable = lib.mkEnableOption "swap on znsage";
    settings = lib.mkOption {
      type = (pkgs.formats.ini { }).type;
      default = { };
      description = "Sections of /etc/znsage.conf, one for each device: see znsage.conf(5).";
    };
  };

  config = lib.mkIf cfg.enable {
    boot.extraModulePackages = [ kernelModule ];
    environment.systemPackages = [ command ];
    environment.etc."znsage.conf".source =
      (pkgs.formats.ini { }).generate "znsage.conf" cfg.settings;
    systemd.generators.znsage-generator = "${command}/bin/znsage";
  };
}
